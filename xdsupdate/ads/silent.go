// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// providers is a set of providers that only grows. They are few, so that it is
// copied for each new one, and looked up in without a lock.
type providers struct {
	set atomic.Pointer[map[registry.ProviderID]struct{}]
}

func (p *providers) has(id registry.ProviderID) bool {
	set := p.set.Load()
	if set == nil {
		return false
	}
	_, ok := (*set)[id]
	return ok
}

func (p *providers) add(id registry.ProviderID) {
	for !p.has(id) {
		next, old := make(map[registry.ProviderID]struct{}), p.set.Load()
		if old != nil {
			maps.Copy(next, *old)
		}
		next[id] = struct{}{}
		p.set.CompareAndSwap(old, &next)
	}
}

// ErrSilentRegistry means that a registry shows services but never reported endpoints to the
// server. What wraps it names the provider and one of its services.
var ErrSilentRegistry = errors.New("shows services but never reported endpoints to this server, so that their clusters stay empty: " +
	"give the registry this server as its updater")

// CheckRegistries says which registries show services in vain: those that take their
// endpoints from load assignments, and whose clusters all stay empty, because none of the
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
	services := now[len(now)-1].Provided.(*table) // the last provider is that of services
	var out []error
	for _, svc := range services.silent(s.EndpointIndex(), nil) {
		out = append(out, fmt.Errorf("provider %s, service %s/%s: %w", svc.Attributes.Provider, svc.Attributes.Namespace, svc.Hostname, ErrSilentRegistry))
	}
	return errors.Join(out...)
}

// warnSilent logs, once for each, the providers that CheckRegistries names.
//
// It is called when the services of the table have been read. A
// registry that makes batches has reported what it shows by then; one that makes
// none may be between the two, and is warned of if this is its first report.
func (p *servicesProvider) warnSilent() {
	for _, svc := range p.table.silent(p.index, &p.warned) {
		id := svc.Attributes.Provider
		p.warned.add(id)
		p.logger.Warn("a registry shows services but never reported endpoints to this server, so that their clusters stay empty: "+
			"give the registry this server as its updater", slog.String("provider", string(id)),
			slog.String("host", string(svc.Hostname)), slog.String("namespace", svc.Attributes.Namespace))
	}
}

// silent returns a service of each provider that is silent, sorted by provider, but for
// those that are known to be.
func (t *table) silent(index *xdsupdate.EndpointIndex, known *providers) (out []*registry.Service) {
	reported := make(map[registry.ProviderID]bool)
	silent := func(id registry.ProviderID) bool {
		if _, asked := reported[id]; !asked {
			reported[id] = known != nil && known.has(id) || index.HasReported(id)
		}
		return !reported[id]
	}
	example := make(map[registry.ProviderID]*registry.Service) // nil: not silent
	for _, h := range t.hosts.All() {
		for _, v := range h.variants {
			for _, svc := range v.services {
				id := svc.Attributes.Provider
				if id == "" || svc.Resolution != registry.ClientSideLB || !silent(id) {
					continue
				}
				first, found := example[id]
				switch {
				case v.endpoints.Len() > 0:
					example[id] = nil
				case !found || first != nil && registry.CompareServices(svc, first) < 0:
					example[id] = svc
				}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(example)) {
		if example[id] != nil {
			out = append(out, example[id])
		}
	}
	return out
}
