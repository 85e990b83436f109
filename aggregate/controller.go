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
	// Updater is what the registries write to. One that reads from this Controller
	// is attached by AttachUpdater instead, as ads.New does. A nil updater is
	// xdsupdate.Discard.
	Updater xdsupdate.XDSUpdater
	// Logger gets a debug line for each registry that comes or goes, and an error for
	// each function of the program that panicked, with the stack. The default, nil,
	// discards.
	Logger *slog.Logger
}

// Controller is many registries as one. The package comment says how their
// answers become one, and what registries have to promise. Create it with
// NewController.
type Controller struct {
	updaters updaters
	logger   *slog.Logger
	queue    *notify.Queue[event]
	// retractions are workloads of registries that have left.
	retractions *notify.Queue[retraction]
	// merged is the registries and what is known of their services. It is
	// replaced, never changed.
	merged atomic.Pointer[merged]
	// group are the registries that Run runs.
	group sync.WaitGroup

	// mu is held while registries come and go, and makes what handlers know and
	// the order of the queue one.
	mu sync.Mutex
	// stop is that of Run.
	stop         <-chan struct{}
	ran, stopped bool
	// unpruned are registries whose predecessors' endpoints have not been removed;
	// pruning has a token when there are new ones.
	unpruned []*registration
	pruning  chan struct{}
	// clusters has the cancel functions of handlers for one cluster.
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

// NewController returns a controller without registries. More than one Options
// panic.
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

// AttachUpdater makes an updater that reads from this Controller one of those that the
// registries write to. It is also asked for a push of the services of each registry that
// comes or goes. An ads.Server attaches itself when it is made. A nil updater is
// xdsupdate.Discard. AttachUpdater panics after AddRegistry, AddRegistryAndRun or
// UpdateRegistry, whose registries would not know of it.
func (c *Controller) AttachUpdater(updater xdsupdate.XDSUpdater) { c.updaters.attach(updater) }

// Registries returns the registries in their order. The caller may modify the
// slice.
func (c *Controller) Registries() []registry.Instance {
	registrations := c.merged.Load().registrations
	out := make([]registry.Instance, len(registrations))
	for i, reg := range registrations {
		out[i] = reg.instance
	}
	return out
}
