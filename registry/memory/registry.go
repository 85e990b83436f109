// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Registry is a registry that the host fills. Create it with New.
type Registry struct {
	opts      Options
	publisher *publish.Publisher[struct{}, state] // each change is a commit; the publisher has no event queue
}

var (
	_ registry.Instance           = (*Registry)(nil)
	_ registry.Subscriber         = (*Registry)(nil)
	_ registry.GatewaySubscriber  = (*Registry)(nil)
	_ registry.ServiceSnapshotter = (*Registry)(nil)
	_ xdsupdate.RootReader        = (*Registry)(nil)
	_ configstore.Drainer         = (*Registry)(nil)
	_ configstore.Flusher         = (*Registry)(nil)
)

// New returns an empty registry. It starts no goroutine.
func New(opts ...Options) *Registry {
	o := options.One("memory.New", opts)
	if o.Provider == "" {
		o.Provider = registry.Memory
	}
	return &Registry{opts: o, publisher: publish.New(publish.Options[struct{}, state]{
		Name: "registry/memory", Shard: xdsupdate.ShardKey{Cluster: o.Cluster, Provider: o.Provider},
		Updater: o.Updater, Logger: o.Logger, Initial: &state{services: registry.NewServiceSet()}, Inline: true,
		Set:       func(s *state) *registry.ServiceSet { return s.services },
		Services:  func(s *state) []*registry.Service { return s.services.List() },
		Workloads: (*state).sortedWorkloads,
	})}
}

// Provider returns Options.Provider.
func (r *Registry) Provider() registry.ProviderID { return r.opts.Provider }

// Cluster returns Options.Cluster.
func (r *Registry) Cluster() registry.ClusterID { return r.opts.Cluster }

// Run delivers until stop is closed. After that neither the updater nor handlers are called. A
// second call panics. The registry works without Run.
func (r *Registry) Run(stop <-chan struct{}) { r.publisher.Run(stop) }

// Drain implements configstore.Drainer.
func (r *Registry) Drain() { r.publisher.Drain() }

// Flush implements configstore.Flusher.
func (r *Registry) Flush(ctx context.Context) error { return r.publisher.Flush(ctx) }

// HasSynced reports whether the host has set the initial state, by Options.HasSynced.
func (r *Registry) HasSynced() bool { return r.opts.HasSynced == nil || r.opts.HasSynced() }

// SubscribeServices implements registry.Subscriber.
func (r *Registry) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return r.publisher.SubscribeServices(handler)
}

// SubscribeWorkloads implements registry.Subscriber.
func (r *Registry) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	return r.publisher.SubscribeWorkloads(handler)
}

// SubscribeNetworkGateways implements registry.GatewaySubscriber.
func (r *Registry) SubscribeNetworkGateways(handler func()) (cancel func()) {
	return r.publisher.SubscribeNetworkGateways(handler)
}

// AppendServiceHandler adds a handler of service changes. It first gets the existing services.
func (r *Registry) AppendServiceHandler(handler registry.ServiceHandler) {
	r.SubscribeServices(handler)
}

// AppendWorkloadHandler adds a handler of workload changes. It first gets the existing workloads.
func (r *Registry) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	r.SubscribeWorkloads(handler)
}

// AppendNetworkGatewayHandler adds a function that is called after each change of the gateways.
func (r *Registry) AppendNetworkGatewayHandler(handler func()) { r.SubscribeNetworkGateways(handler) }
