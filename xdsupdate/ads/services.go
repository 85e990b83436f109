// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"iter"
	"log/slog"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// servicesProvider is the provider of the services of a discovery and of the endpoints
// that the server was told of: the last one. What it has read is what all others find in
// the PushContext, so that it is called first. All of it is guarded by Server.building.
type servicesProvider struct {
	discovery   registry.ServiceDiscovery
	snapshotter registry.ServiceSnapshotter // nil: the discovery is none
	customizers customizers
	failures    *failure.List
	index       *xdsupdate.EndpointIndex
	logger      *slog.Logger

	// table has all hosts as they were published last; outdated are those that may have
	// been made of something else than there is now.
	table    *table
	outdated outdated
	// warned are those that were warned of because they have not called the server.
	// unwarned: services have changed since warnSilent.
	warned   providers
	unwarned bool

	rebuilt
}

// rebuilt is what a push has made of the services, until it is published.
type rebuilt struct {
	next *table
	// current are hosts that are now as the moment has them.
	current []registry.Hostname
	// leftOut are the endpoints and ports that are left out from now on.
	leftOut []leftOut
	// incomplete: services could not be read, so that there is none of those that are new.
	incomplete bool
	// names are the resources that may have changed.
	names []ChangedName
}

var (
	_ Provider = (*servicesProvider)(nil)
	_ Lister   = (*table)(nil)
)

func newServicesProvider(discovery registry.ServiceDiscovery, o ServiceOptions, failed *failure.List) *servicesProvider {
	if discovery == nil {
		discovery = noServices{}
	}
	p := &servicesProvider{discovery: discovery, customizers: o.Customizers, failures: failed, table: &table{failures: failed}}
	p.snapshotter, _ = registry.As[registry.ServiceSnapshotter](discovery)
	return p
}

// Name implements Provider.
func (*servicesProvider) Name() string { return "services" }

// Attach does nothing: registries ask for pushes.
func (*servicesProvider) Attach(xdsupdate.XDSUpdater) {}

// Group returns nil: what views have of a proxy is enough.
func (*servicesProvider) Group(*core.Node, *registry.Proxy) any { return nil }

// Provide brings the hosts that a push is about up to date.
func (p *servicesProvider) Provide(push *PushContext) (Provided, Changes) {
	p.rebuilt = rebuilt{}
	p.rebuildHosts(push)
	push.table = p.next
	p.customizeAgain(push)
	push.table = p.next
	return p.next, Changes{Names: p.names}
}

// published takes that clients are sent what the last push has made.
func (p *servicesProvider) published(push *PushContext) {
	made := p.rebuilt
	p.table, p.rebuilt = made.next, rebuilt{}
	p.outdated.published(made.current)
	p.warnLeftOut(made.leftOut)
	p.unwarned = p.unwarned || slices.ContainsFunc(push.changed, func(h ChangedHost) bool { return !h.EndpointsOnly })
	if push.Request.Everything() && p.unwarned {
		p.unwarned = false
		p.warnSilent()
	}
}

// prepare reads the discovery ahead: an aggregate merges what has changed when it is
// read, which is then done but for what changes until the next time.
func (p *servicesProvider) prepare() {
	if p.snapshotter != nil {
		_ = guard.Call(func() { p.snapshotter.ServiceSnapshot() }) // read reports a panic
	}
}

// read reads the discovery.
func (p *servicesProvider) read() (out serviceReader) {
	err := failure.Part{In: failure.InServices}.Call(func() error {
		if p.snapshotter != nil {
			out.set = p.snapshotter.ServiceSnapshot()
		}
		if out.set == nil {
			out.list = withoutNil(p.discovery.Services())
		}
		out.ok = true
		return nil
	})
	p.failures.Undone(err)
	return out
}

// customizeAgain renews the hosts that customizers want to customize anew.
func (p *servicesProvider) customizeAgain(push *PushContext) {
	if len(p.customizers) == 0 {
		return
	}
	hosts := make(map[registry.Hostname]*host)
	for _, c := range p.customizers {
		p.failures.Undone(c.part().Call(func() error {
			p.renew(c, push, hosts)
			return nil
		}))
	}
	if len(hosts) > 0 {
		p.next = p.next.with(hosts)
	}
}

// renew renews the hosts that a customizer wants to customize anew.
func (p *servicesProvider) renew(c Customizer, push *PushContext, hosts map[registry.Hostname]*host) {
	if c.Changed == nil {
		return
	}
	changed := c.Changed(push)
	if changed == nil {
		return
	}
	for name := range changed {
		if before := p.next.host(name); before != nil && hosts[name] == nil {
			after := before.renewed(p.customizers)
			hosts[name] = after
			p.names = appendAffected(p.names, before, after)
		}
	}
}

// Names implements Provided: a wildcard subscription covers all clusters or load
// assignments. API listeners and routes are for those who ask for them by name: Envoy
// takes no API listener from a server.
func (t *table) Names(v View, typeURL string) (iter.Seq[string], bool) {
	return func(yield func(string) bool) {
		for name := range t.names(v, typeURL) {
			if !yield(name) {
				return
			}
		}
	}, true
}

// Covers implements Provided. A name that there is not may be covered.
func (t *table) Covers(_ View, typeURL, _ string) (covered, only bool) {
	return isCovered(typeURL), true
}

// isCovered reports whether wildcard subscriptions to a type cover what is made of
// services.
func isCovered(typeURL string) bool {
	return typeURL == envoy.ClusterType || typeURL == envoy.LoadAssignmentType
}

// List implements Lister.
func (t *table) List(v View, typeURL string) (iter.Seq2[string, Answer], bool) {
	return func(yield func(string, Answer) bool) {
		for name, p := range t.names(v, typeURL) {
			if !yield(name, Answer{resource: p.resource(typeURL, name, v, t.failures)}) {
				return
			}
		}
	}, true
}
