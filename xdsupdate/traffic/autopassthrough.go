// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
)

// autoPassthroughChains yields the filter chains of an AUTO_PASSTHROUGH server, one for each port
// and subset of the mesh services that its hosts cover.
func (w *chainWalk) autoPassthroughChains() bool {
	passed, err := w.passedServices(w.proxy, w.server)
	if !w.add(gatewayChain{}, err) {
		return false
	}
	for _, svc := range passed {
		for _, name := range w.passedNames(w.proxy, svc) {
			c, err := w.guard.connections().before(func(filters []*listenerv3.Filter) *listenerv3.FilterChain {
				return xdsbuild.AutoPassthroughChain(name, filters...)
			})
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			if !w.add(gatewayChain{FilterChain: c}, err) {
				return false
			}
		}
	}
	return true
}

// passedServices returns the services that have filter chains at an AUTO_PASSTHROUGH server, sorted
// by host name. The error reports services that exceed the limit of filter chains. The servers of a
// Gateway share the limit.
func (st *state) passedServices(p *proxy, s *gatewayServer) ([]*mesh.Service, error) {
	var covered []*mesh.Service
	for _, svc := range st.scopeOf(p).Sorted {
		if s.covers(svc) {
			covered = append(covered, svc)
		}
	}
	claims := make([]claim, len(covered))
	for i, svc := range covered {
		chains := len(st.passedNames(p, svc)) * s.gateway.Passing()
		claims[i] = claim{svc.Of[0].CreationTime, string(hostname.Lower(svc.Host)), svc.Namespace, chains}
	}
	limit := st.settings.limits.FilterChains
	over := allot(limit, claims)
	if over == nil {
		return covered, nil
	}
	var passed, left []*mesh.Service
	for i, svc := range covered {
		if over[i] {
			left = append(left, svc)
		} else {
			passed = append(passed, svc)
		}
	}
	return passed, fmt.Errorf("for all services there would be more than %d filter chains%s: there are none for %s, and for %d others",
		limit, beyondShare, left[0].Host, len(left)-1)
}

// covers reports whether a service of the mesh is behind an AUTO_PASSTHROUGH server.
func (s *gatewayServer) covers(svc *mesh.Service) bool {
	return !svc.Of[0].MeshExternal && slices.ContainsFunc(s.hosts, func(h serverHost) bool {
		return h.admits(svc.Namespace) && hostname.Lower(svc.Host).SubsetOf(h.name)
	})
}

// passedNames returns the names of a service's clusters behind AUTO_PASSTHROUGH servers. Clients
// send these names as their TLS server name. Names with a star, of wildcard hosts and of invalid
// subsets, are left out, because Envoy rejects listeners with a star in the middle of a name.
func (st *state) passedNames(p *proxy, svc *mesh.Service) []string {
	var out []string
	m, _ := st.RuleOf(&p.Proxy, svc.Host, svc.Namespace)
	subsets := st.subsetsOf(m, svc.Host)
	for _, port := range svc.Ports {
		if port.Protocol == registry.ProtocolUDP {
			continue
		}
		out = append(out, envoy.SNIName(port.Number, "", svc.Host))
		for _, subset := range subsets {
			out = append(out, envoy.SNIName(port.Number, subset.GetName(), svc.Host))
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return strings.Contains(name, "*") })
}
