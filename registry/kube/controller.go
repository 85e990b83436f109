// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	"go.uber.org/atomic"
	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Controller is the registry of one Kubernetes cluster. The package comment describes its content.
type Controller struct {
	options Options
	sources []*source
	// publisher has the published state, and delivers events.
	publisher *publish.Publisher[event, state]
	ran       atomic.Bool
	// engine is used only by the goroutine that handles a batch.
	engine *engine
}

var (
	_ registry.Instance           = (*Controller)(nil)
	_ registry.ServiceSnapshotter = (*Controller)(nil)
	_ registry.Subscriber         = (*Controller)(nil)
	_ registry.GatewaySubscriber  = (*Controller)(nil)
	_ registry.WorkloadReceiver   = (*Controller)(nil)
	_ xdsupdate.RootReader        = (*Controller)(nil)
	_ configstore.Drainer         = (*Controller)(nil)
	_ configstore.Flusher         = (*Controller)(nil)
)

// New returns a registry of the cluster that a client reads. It reports every change to the
// updater. A nil updater is xdsupdate.Discard, and a warning; a nil client is one of a cluster
// without objects. New starts no goroutine: Run lists and watches.
func New(client kubernetes.Interface, updater xdsupdate.XDSUpdater, opts ...Options) *Controller {
	c := &Controller{options: options.One("kube.New", opts).withDefaults()}
	c.engine = newEngine(&c.options)
	c.publisher = publish.New(publish.Options[event, state]{
		Name: "kube", Shard: xdsupdate.ShardKey{Cluster: c.options.ClusterID, Provider: registry.Kubernetes},
		Updater: updater, Logger: c.options.Logger, Handle: c.handle,
		Initial:  &state{services: registry.NewServiceSet(), mesh: c.engine.mesh},
		Set:      func(s *state) *registry.ServiceSet { return s.services },
		Services: func(s *state) []*registry.Service { return s.services.List() }, Workloads: c.ownWorkloads,
	})
	if client != nil {
		c.sources = c.newSources(client)
	}
	return c
}

// Provider returns registry.Kubernetes.
func (c *Controller) Provider() registry.ProviderID { return registry.Kubernetes }

// Cluster returns Options.ClusterID.
func (c *Controller) Cluster() registry.ClusterID { return c.options.ClusterID }

// Run lists and watches the cluster until stop is closed, and handles the events. It returns when
// all goroutines that it started have ended. The content of the registry stays. A second call
// panics.
func (c *Controller) Run(stop <-chan struct{}) {
	if c.ran.Swap(true) {
		panic("kube: Run called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Run has a stop channel
	var group sync.WaitGroup
	for _, s := range c.sources {
		group.Go(func() { s.run(ctx) })
	}
	c.publisher.Run(stop)
	cancel()
	group.Wait()
}

// Drain handles pending events on the caller's goroutine, unless another goroutine is handling
// them.
func (c *Controller) Drain() { c.publisher.Drain() }

// Flush returns when all events that the registry received before the call have been handled, and
// the updater and the handlers have been notified. Handlers and the updater must not call it. It
// returns the cause of ctx's end, or an error if Run has ended.
func (c *Controller) Flush(ctx context.Context) error { return c.publisher.Flush(ctx) }

// HasSynced reports whether the content of the first complete list of each kind is visible, and the
// updater has been notified of it. HasSynced waits for a kind that may not be listed until it may
// be, unless the kind is in Options.Optional: see Errors.
func (c *Controller) HasSynced() bool { return c.publisher.HasSynced(c.listed) }

// Listed returns the kinds of objects of which the registry has received a complete list, with the
// names in SourceError.Kind.
func (c *Controller) Listed() []string {
	var out []string
	for _, s := range c.sources {
		if s.listed.Load() {
			out = append(out, s.kind)
		}
	}
	return out
}

func (c *Controller) listed() bool {
	for _, s := range c.sources {
		if !s.hasAnswered() {
			return false
		}
	}
	return true
}
