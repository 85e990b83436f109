// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
)

// servicesProvider is the provider of the services of a discovery and of the endpoints
// that the server was told of: the last one. What it has read is what all others find in
// the PushContext, so that it is called first. All of it is guarded by Server.building.
type servicesProvider struct {
	*services.Builder
	discovery   registry.ServiceDiscovery
	customizers customizers
	failures    *failure.List
	// incomplete: of the last push services could not be read.
	incomplete bool
}

var (
	_ Provider = (*servicesProvider)(nil)
	_ Lister   = servicesLayer{}
)

func newServicesProvider(
	discovery registry.ServiceDiscovery, o ServiceOptions, failed *failure.List, index *xdsupdate.EndpointIndex, logger *slog.Logger,
) *servicesProvider {
	if discovery == nil {
		discovery = services.None{}
	}
	p := &servicesProvider{discovery: discovery, customizers: o.Customizers, failures: failed}
	var customize services.Customizer
	if len(o.Customizers) > 0 {
		customize = p.customizers
	}
	p.Builder = services.NewBuilder(discovery, customize, failed, index, logger)
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
	made := p.Build(push.Request, push.moment.services, push.moment.endpoints)
	p.incomplete = made.Incomplete
	for _, h := range made.Changed {
		push.changed = append(push.changed, ChangedHost{Hostname: h.Hostname, EndpointsOnly: h.EndpointsOnly})
	}
	push.table = made.Next
	if again := p.customizedAnew(push); len(again) > 0 {
		p.Renew(again)
		push.table = made.Next
	}
	names := make([]ChangedName, len(made.Affected))
	for i, n := range made.Affected {
		names[i] = ChangedName{TypeURL: n.TypeURL, Name: n.Name, Uncovered: !services.IsCovered(n.TypeURL)}
	}
	return servicesLayer{made.Next, p.customizers}, Changes{Names: names}
}

// customizedAnew returns the hosts that customizers want to customize anew.
func (p *servicesProvider) customizedAnew(push *PushContext) (out []registry.Hostname) {
	for _, c := range p.customizers {
		if c.Changed == nil {
			continue
		}
		p.failures.Undone(c.part().Call(func() error {
			if changed := c.Changed(push); changed != nil {
				for name := range changed {
					out = append(out, name)
				}
			}
			return nil
		}))
	}
	return out
}

// servicesLayer is what the provider of services has at one moment.
type servicesLayer struct {
	table       *services.Table
	customizers customizers
}

// Names implements Provided.
func (l servicesLayer) Names(v View, typeURL string) (iter.Seq[string], bool) {
	return l.table.Names(v.ofServices(), typeURL), true
}

// Covers implements Provided. A name that there is not may be covered.
func (l servicesLayer) Covers(_ View, typeURL, _ string) (covered, only bool) {
	return services.IsCovered(typeURL), true
}

// Lookup implements Provided.
func (l servicesLayer) Lookup(v View, typeURL, name string) Answer {
	return Answer{resource: l.table.Lookup(l.customizers.ofServices(v), typeURL, name)}
}

// List implements Lister.
func (l servicesLayer) List(v View, typeURL string) (iter.Seq2[string, Answer], bool) {
	return func(yield func(string, Answer) bool) {
		for name, r := range l.table.All(l.customizers.ofServices(v), typeURL) {
			if !yield(name, Answer{resource: r}) {
				return
			}
		}
	}, true
}

// ErrSilentRegistry means that a registry shows services but never reported endpoints to the
// server. What wraps it names the provider and one of its services.
var ErrSilentRegistry = errors.New("shows services but never reported endpoints to this server, so that their clusters stay empty: " +
	"give the registry this server as its updater")

// CheckRegistries says which registries show services that nobody can call: those that take
// their endpoints from load assignments, and whose clusters all stay empty, because none of the
// registries of their provider ever called the server. The error wraps ErrSilentRegistry
// for each; nil: there is none. Any call is enough, so a registry that has no endpoints is not
// silent; nor is a provider for which another reports endpoints, and services without a
// provider are not looked at.
//
// It is about what the last push has read: call it when the registries have synced and Flush
// has returned. A registry that makes no batches (xdsupdate.BatchUpdater), and is about to
// make its first report, may be named until then. It looks at all services.
func (s *Server) CheckRegistries() error {
	var now layers
	s.cache.locked(func() { now = s.cache.layers })
	if now == nil {
		return nil
	}
	services := now[len(now)-1].Provided.(servicesLayer).table // the last provider is that of services
	var out []error
	for _, svc := range services.Silent(s.EndpointIndex()) {
		out = append(out, fmt.Errorf("provider %s, service %s/%s: %w", svc.Attributes.Provider, svc.Attributes.Namespace, svc.Hostname, ErrSilentRegistry))
	}
	return errors.Join(out...)
}
