// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"log/slog"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Options of a Controller. The zero value works.
type Options struct {
	// Updater is the updater of the registries. An updater that reads from this Controller is
	// attached with AttachUpdater instead, as ads.New does. A nil updater is xdsupdate.Discard, and a
	// warning if there is no other updater when the first registry is made.
	Updater xdsupdate.XDSUpdater
	// Logger gets a debug line for each registry that is added, replaced or deleted, a warning if the
	// registries have no updater, and an error, with the stack, for each panic in a function of the
	// host. The default, nil, discards.
	Logger *slog.Logger
}

// Controller presents several registries as one. The package comment describes how it merges them,
// and the requirements on registries. Create it with NewController.
type Controller struct {
	updaters updaters
	// source identifies the list of registries in roots.
	source xdsupdate.Source
	logger *slog.Logger
	queue  *notify.Queue[event]
	// retractions holds workloads of registries that were deleted or replaced.
	retractions *notify.Queue[retraction]
	// merged is the list of registries and their merged services. Each change replaces it.
	merged atomic.Pointer[merged]
	// group waits for the registries that Run runs.
	group sync.WaitGroup

	// mu is held while registries are added, replaced or deleted. It keeps the state known to
	// handlers and the queue in one order.
	mu sync.Mutex
	// stop is the argument of Run.
	stop         <-chan struct{}
	ran, stopped bool
	// unpruned are registries whose predecessors' endpoints have not been removed. pruning gets a
	// token when a registry is added to unpruned.
	unpruned []*registration
	pruning  chan struct{}
	// clusters holds the cancel functions of handlers for one cluster.
	clusters map[registry.ClusterID][]func()
}

var (
	_ registry.ServiceDiscovery   = (*Controller)(nil)
	_ registry.Controller         = (*Controller)(nil)
	_ registry.Subscriber         = (*Controller)(nil)
	_ registry.GatewaySubscriber  = (*Controller)(nil)
	_ registry.ServiceSnapshotter = (*Controller)(nil)
	_ xdsupdate.RootReader        = (*Controller)(nil)
	_ configstore.Drainer         = (*Controller)(nil)
	_ configstore.Flusher         = (*Controller)(nil)
)

// NewController returns a controller without registries. It panics if there is more than one
// Options.
func NewController(opts ...Options) *Controller {
	o := options.One("aggregate.NewController", opts)
	c := &Controller{
		updaters: updaters{all: o.Updater},
		logger:   o.Logger,
		pruning:  make(chan struct{}, 1),
		clusters: map[registry.ClusterID][]func(){},
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.queue = notify.New(notify.Options[event]{Name: "aggregate", Panicked: c.handlerPanicked})
	c.retractions = notify.New(notify.Options[retraction]{Name: "aggregate", Panicked: c.receiverPanicked})
	c.retractions.Subscribe(notify.Subscription[retraction]{Handle: c.retract})
	c.merged.Store(&merged{services: &registry.ServiceSet{}})
	return c
}

// AttachUpdater adds an updater that reads from this Controller to the updaters of the registries.
// The updater also gets a push request for the services of each registry that is added, replaced or
// deleted. An ads.Server attaches itself when it is created. A nil updater is xdsupdate.Discard.
// AttachUpdater panics after AddRegistry, AddRegistryAndRun or UpdateRegistry, because the
// registries would not write to the updater.
func (c *Controller) AttachUpdater(updater xdsupdate.XDSUpdater) { c.updaters.attach(updater) }

// Registries returns the registries in their order. The caller may modify the slice.
func (c *Controller) Registries() []registry.Instance {
	registrations := c.merged.Load().registrations
	out := make([]registry.Instance, len(registrations))
	for i, reg := range registrations {
		out[i] = reg.instance
	}
	return out
}
