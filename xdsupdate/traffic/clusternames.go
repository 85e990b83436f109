// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// clusterNames returns the names of all clusters of a proxy, sorted. Those of DNS
// services without endpoints, which have no cluster, are among them.
func (st *state) clusterNames(p *proxy) []string {
	out := constantNames(p)
	for u := range st.upstreams(p) {
		out = append(out, u.Name())
	}
	slices.Sort(out)
	return out
}

// assignmentNames returns the names of all load assignments of a proxy, sorted.
func (st *state) assignmentNames(p *proxy) []string {
	var out []string
	for u := range st.upstreams(p) {
		if u.EDS() {
			out = append(out, u.Name())
		}
	}
	slices.Sort(out)
	return out
}

// upstreams yields what the clusters of a proxy are of, without endpoints.
func (st *state) upstreams(p *proxy) iter.Seq[*envoy.Upstream] {
	return func(yield func(*envoy.Upstream) bool) {
		clusters := st.clustersOf(p)
		for _, svc := range st.scopeOf(p).sorted {
			m, _ := st.ruleOf(p, svc.host, svc.namespace)
			for _, at := range svc.ports {
				if at.Protocol == registry.ProtocolUDP {
					continue
				}
				for _, subset := range slices.Concat([]string{""}, m.subsetNames()) {
					for _, passed := range []bool{false, true} {
						if !clusters.of(svc, passed) {
							continue
						}
						u := st.upstreamOf(p, at, m, subset)
						u.AutoPassthrough = passed
						if !yield(u) {
							return
						}
					}
				}
			}
		}
	}
}

// clusterScope says which of the services that a proxy sees it has clusters of.
type clusterScope struct {
	// used: those of these hosts only, in lower case; nil: all.
	used map[registry.Hostname][]uint32
	// passing: also clusters of connections that are found by their server names.
	passing bool
}

// of reports whether there are clusters of a service, or those of its server names.
func (c clusterScope) of(svc *service, passed bool) bool {
	if passed {
		return c.passing && !svc.of[0].MeshExternal
	}
	if c.used == nil {
		return true
	}
	_, used := c.used[lower(svc.host)]
	return used
}

// clustersOf returns the scope of a proxy. Only those of gateways are not all.
func (st *state) clustersOf(p *proxy) clusterScope {
	var c clusterScope
	if p.role != router {
		return c
	}
	if st.settings.filterGatewayClusters {
		c.used = make(map[registry.Hostname][]uint32)
	}
	for _, g := range st.gatewaysOf(p.labels) {
		c.passing = c.passing || slices.ContainsFunc(g.spec.GetServers(), func(s *networking.Server) bool {
			return s.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH
		})
		if c.used == nil {
			continue
		}
		for _, v := range st.virtualServicesFor(g.String(), p.namespace) {
			maps.Copy(c.used, st.destinationsOf(v))
		}
	}
	return c
}
