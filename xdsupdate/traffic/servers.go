// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// servers tracks the gRPC clients that may be servers, because their namespace has a workload at
// one of their addresses. It reports changes of this set.
type servers struct {
	// last returns the result of the last push.
	last func() *provided

	mu sync.Mutex
	// asked are the places of the clients that were looked up, with the result. A workload that is
	// deleted does not change the group, so that the client keeps its view and learns that its
	// listeners are deleted. If there are too many places, they are all forgotten, and a regrouping
	// of the connected clients looks them up again. limit is the number of places that leads to
	// this.
	asked map[workloadPlace]bool
	limit int
}

// workloadPlace is a canonical address in a namespace.
type workloadPlace struct{ namespace, address string }

// leastAsked is the lower bound of limit.
const leastAsked limit.Size = 4096

// of returns the canonical addresses of a client if there are workloads at some of them, or else
// none.
func (s *servers) of(namespace string, addresses []string) []string {
	var canonical []string
	s.mu.Lock()
	known := false
	for _, a := range addresses {
		a = ipaddr.Canonical(a)
		if s.asked == nil {
			s.asked = make(map[workloadPlace]bool)
		}
		at := workloadPlace{namespace, a}
		had := s.asked[at]
		s.asked[at] = had
		known = known || had
		canonical = append(canonical, a)
	}
	s.mu.Unlock()
	slices.Sort(canonical)
	canonical = slices.Compact(canonical)
	// No workload is missed: the places are recorded before this read, and appeared reads them
	// after the state is stored.
	last := s.last()
	if !known && (last == nil || len(last.state.workloads.At(namespace, canonical)) == 0) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range canonical {
		if _, asked := s.asked[workloadPlace{namespace, a}]; asked {
			s.asked[workloadPlace{namespace, a}] = true
		}
	}
	return canonical
}

// appeared reports whether clients must be regrouped after a difference, because a workload has
// appeared at a client's address or because the places are forgotten. A nil difference stands for a
// complete change.
func (s *servers) appeared(d *difference) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) > max(s.limit, leastAsked.Get()) {
		s.limit = 2 * len(s.asked)
		s.asked = nil
		return true
	}
	if len(s.asked) == 0 {
		return false
	}
	if d == nil {
		return true
	}
	for at := range s.changedPlaces(d) {
		if known, asked := s.asked[at]; asked && !known {
			return true
		}
	}
	return false
}

// changedPlaces returns the places of workloads in a difference.
func (s *servers) changedPlaces(d *difference) map[workloadPlace]struct{} {
	out := make(map[workloadPlace]struct{})
	for _, host := range slices.Concat(d.endpoints, d.services) {
		for _, svc := range slices.Concat(d.before.world.Named(host), d.after.world.Named(host)) {
			addPlaces(out, d, svc)
		}
	}
	return out
}

// addPlaces adds the places of changed endpoints of a service, or of all its endpoints if the
// service has changed.
func addPlaces(places map[workloadPlace]struct{}, d *difference, svc *registry.Service) {
	namespace := svc.Attributes.Namespace
	add := func(e *registry.Endpoint) {
		for _, a := range e.Addresses {
			places[placeOf(svc, a)] = struct{}{}
		}
	}
	before, after := d.before.world.Endpoints(svc.Hostname, namespace), d.after.world.Endpoints(svc.Hostname, namespace)
	for _, e := range after.ChangesSince(before) {
		add(e)
	}
	if !slices.Contains(d.services, hostname.Lower(svc.Hostname)) {
		return
	}
	for e := range before.All() {
		add(e)
	}
	for e := range after.All() {
		add(e)
	}
}

// serverListeners adds the listeners of the gRPC servers in a namespace that of accepts. An empty
// namespace stands for all.
func (c *affected) serverListeners(namespace string, of func(p *proxy) bool) {
	c.affect(namespace, envoy.ListenerType, func(p *proxy) bool { return len(p.server) > 0 && of(p) })
}

// selectsServer reports whether a policy selects a server before or after the push.
func (c *affected) selectsServer(a *objects.AuthorizationPolicy, p *proxy) bool {
	return slices.ContainsFunc([]*state{c.before, c.after}, func(st *state) bool {
		return slices.ContainsFunc(labelsOf(st.workloads.At(p.Namespace, p.server)), a.Selects)
	})
}

// serverWorkloads adds the listeners of gRPC servers with changed workloads.
func (c *affected) serverWorkloads() {
	if c.servers.none() {
		return
	}
	places := c.servers.changedPlaces(c.difference)
	namespaces := make(map[string]struct{})
	for at := range places {
		namespaces[at.namespace] = struct{}{}
	}
	for namespace := range namespaces {
		c.serverListeners(namespace, func(p *proxy) bool {
			return slices.ContainsFunc(p.server, func(address string) bool {
				_, changed := places[workloadPlace{p.Namespace, address}]
				return changed
			})
		})
	}
}

// none reports whether no gRPC client was looked up.
func (s *servers) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked) == 0
}
