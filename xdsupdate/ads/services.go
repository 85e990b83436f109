// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"iter"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
)

// servicesProvider is the last provider: that of the services of a discovery and of the reported
// endpoints. It is called first, because all others read its table from the PushContext.
// Server.building guards all of it.
type servicesProvider struct {
	*services.Builder
	discovery registry.ServiceDiscovery // or nil
	// incomplete means that the last push could not read the services.
	incomplete bool
}

var _ Lister = servicesLayer{}

// provide brings the hosts that a push is about up to date.
func (p *servicesProvider) provide(push *PushContext) (Provided, Changes) {
	made := p.Build(push.Request, push.moment.services, push.moment.root.Endpoints())
	p.incomplete = made.Incomplete
	for _, h := range made.Changed {
		push.changed = append(push.changed, ChangedHost{Hostname: h.Hostname, EndpointsOnly: h.EndpointsOnly})
	}
	push.table = made.Next
	names := make([]ChangedName, len(made.Affected))
	for i, n := range made.Affected {
		names[i] = ChangedName{TypeURL: n.TypeURL, Name: n.Name, Uncovered: !services.IsCovered(n.TypeURL), Namespaces: n.Namespaces}
	}
	return servicesLayer{made.Next}, Changes{Names: names}
}

// servicesLayer is the state of the provider of services at one moment.
type servicesLayer struct{ table *services.Table }

// Names implements Provided.
func (l servicesLayer) Names(v View, typeURL string) (iter.Seq[string], bool) {
	return l.table.Names(v.ofServices(), typeURL), true
}

// Covers implements Provided. It may cover a name that does not exist.
func (l servicesLayer) Covers(_ View, typeURL, _ string) (covered, only bool) {
	return services.IsCovered(typeURL), true
}

// Lookup implements Provided.
func (l servicesLayer) Lookup(v View, typeURL, name string) Answer {
	return Answer{resource: l.table.Lookup(v.ofServices(), typeURL, name)}
}

// List implements Lister.
func (l servicesLayer) List(v View, typeURL string) (iter.Seq2[string, Answer], bool) {
	return func(yield func(string, Answer) bool) {
		l.table.All(v.ofServices(), typeURL)(func(name string, r *resource.State) bool { return yield(name, Answer{resource: r}) })
	}, true
}

// ErrSilentRegistry means that a registry has services but never reported endpoints to the server.
// An error that wraps it names the provider and one of its services.
var ErrSilentRegistry = errors.New("shows services but never reported endpoints to this server, so that their clusters stay empty: " +
	"give the registry this server as its updater")

// CheckRegistries returns an error for registries whose services cannot be called: the services
// take their endpoints from load assignments, and all their clusters stay empty, because no
// registry of their provider ever called the server. The error wraps ErrSilentRegistry for each; it
// is nil if there are no such registries. Any call is enough, so a registry without endpoints is
// not silent; nor is a provider if another of its registries reports endpoints. Services without a
// provider are not checked.
//
// It describes the state that the last push has read: call it when the registries have synced and
// Flush has returned. A registry that makes no batches (xdsupdate.BatchUpdater), and is about to
// make its first report, may be named until then. Its cost depends on the number of all services.
func (s *Server) CheckRegistries() error {
	var now layers
	s.cache.locked(func() { now = s.cache.layers })
	if now == nil {
		return nil
	}
	services := now[len(now)-1].Provided.(servicesLayer).table // the last provider is that of services
	var out []error
	for _, svc := range services.Silent(s.EndpointIndex()) {
		out = append(out, fmt.Errorf("provider %s, %s: %w", svc.Attributes.Provider, excerpt.Object("service", svc.Attributes.Namespace, string(svc.Hostname)), ErrSilentRegistry))
	}
	return errors.Join(out...)
}
