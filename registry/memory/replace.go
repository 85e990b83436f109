// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"maps"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Set adds a service with its endpoints, or replaces the service of the same host name and
// namespace and all its endpoints, in one step: neither a reader nor a push has one without the
// other. Apart from that it is equivalent to SetService and SetEndpoints.
//
// The error is an *InvalidError, by Definition.Check; then the registry is unchanged.
func (r *Registry) Set(service *registry.Service, endpoints []*registry.Endpoint) error {
	d := Definition{Service: service, Endpoints: endpoints}
	if err := d.Check(); err != nil {
		return fmt.Errorf("set %w", err)
	}
	d.Service = r.complete(service)
	return r.publisher.Commit(func(s *state) (*state, *publish.Change, error) {
		next := draft{state: s}
		next.set(d)
		return next.commit()
	})
}

// Replace makes these services with these endpoints the complete content of the registry, in one
// step, as Set does for one service. Unchanged services and endpoints are not reported, and cost
// the comparison. Removals are reported first, in the order of Services, then the other changes, in
// the order given. Workloads and gateways are kept. The slices remain the caller's.
//
// The error is an *InvalidError, by Definition.Check or for a duplicate service; then the registry
// is unchanged.
func (r *Registry) Replace(all []Definition) error {
	completed := make([]Definition, len(all))
	keys := make(map[serviceKey]struct{}, len(all))
	for i, d := range all {
		if err := d.Check(); err != nil {
			return fmt.Errorf("replace %w", err)
		}
		k := keyOf(d.Service)
		if _, ok := keys[k]; ok {
			return fmt.Errorf("replace %w", invalid(d.Service, "hostname", "the service is there twice"))
		}
		keys[k] = struct{}{}
		completed[i] = Definition{Service: r.complete(d.Service), Endpoints: d.Endpoints}
	}
	return r.publisher.Commit(func(s *state) (*state, *publish.Change, error) {
		next := draft{state: s}
		for _, old := range s.services.List() {
			if _, ok := keys[keyOf(old)]; !ok {
				next.remove(old)
			}
		}
		for _, d := range completed {
			next.set(d)
		}
		return next.commit()
	})
}

// draft builds a state. Each service changes at most once in it.
type draft struct {
	// state is the base of the draft.
	state *state
	// next is nil as long as nothing differs from the base. It has the services of the base until
	// commit, which sets hosts in one pass.
	next   *state
	hosts  map[registry.Hostname][]*registry.Service
	change publish.Change
}

// begin creates next unless it exists.
func (d *draft) begin() {
	if d.next == nil {
		d.next, d.hosts = d.state.clone(), map[registry.Hostname][]*registry.Service{}
	}
}

// set replaces a service and its endpoints.
func (d *draft) set(def Definition) {
	k := keyOf(def.Service)
	reported := d.setService(k, d.state.service(k), def.Service)
	list := d.state.endpointsOf(k)
	removed, added := difference(list, def.Endpoints)
	if len(removed)+len(added) == 0 {
		return
	}
	endpoints, changes := publish.Edit(list, list.Edit(max(len(removed), len(added))), removed, added)
	d.begin()
	d.next.setEndpoints(k, endpoints, changes)
	d.change.Endpoints = append(d.change.Endpoints, publish.EndpointUpdate{
		Hostname: k.hostname, Namespace: k.namespace, Endpoints: endpoints, Changes: changes,
	})
	if def.Service.Resolution.IsDNS() && !reported {
		d.push(k, xdsupdate.ReasonEndpoint)
	}
}

// setService replaces old, which may be nil, by a service. It reports whether handlers are
// notified.
func (d *draft) setService(k serviceKey, old, service *registry.Service) (reported bool) {
	if old != nil && same(old, service) {
		return false
	}
	d.replace(k, old, service)
	switch {
	case old == nil:
		d.report(nil, service, registry.EventAdd)
	case old.Equal(service):
		return false
	default:
		d.report(old, service, registry.EventUpdate)
	}
	return true
}

// remove removes a service with its endpoints.
func (d *draft) remove(old *registry.Service) {
	k := keyOf(old)
	d.replace(k, old, nil)
	d.next.dropEndpoints(k)
	d.report(nil, old, registry.EventDelete)
}

func (d *draft) replace(k serviceKey, old, service *registry.Service) {
	d.begin()
	others, ok := d.hosts[k.hostname]
	if !ok {
		others = d.state.services.Host(k.hostname)
	}
	d.hosts[k.hostname] = replaced(others, old, service)
}

func (d *draft) report(prev, curr *registry.Service, event registry.Event) {
	k := keyOf(curr)
	d.change.Services = append(d.change.Services, publish.ServiceUpdate{Hostname: k.hostname, Namespace: k.namespace, Event: event})
	d.change.ServiceChanges = append(d.change.ServiceChanges, publish.ServiceChange{Prev: prev, Curr: curr, Event: event})
	d.push(k, xdsupdate.ReasonService)
}

func (d *draft) push(k serviceKey, reason xdsupdate.TriggerReason) {
	d.change.Pushes = append(d.change.Pushes, publish.Push{Reason: reason, Key: xdsupdate.ServiceKey(k.hostname, k.namespace)})
}

// commit returns the result of an edit of the publisher.
func (d *draft) commit() (*state, *publish.Change, error) {
	if d.next == nil {
		return d.state, nil, nil
	}
	if len(d.hosts) > 0 {
		d.next.services = d.state.services.WithHosts(maps.All(d.hosts))
	}
	return d.next, &d.change, nil
}
