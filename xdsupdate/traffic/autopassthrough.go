// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"iter"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// autoPassthroughChains yields the filter chains of an AUTO_PASSTHROUGH server, one
// for each port of the services of the mesh that its hosts cover, or why one is left
// out.
func (st *state) autoPassthroughChains(p *proxy, s *gatewayServer) iter.Seq2[*listenerv3.FilterChain, error] {
	return func(yield func(*listenerv3.FilterChain, error) bool) {
		for _, svc := range st.scopeOf(p).sorted {
			if !s.covers(svc) {
				continue
			}
			for _, name := range st.passedNames(p, svc) {
				c, err := envoy.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return envoy.AutoPassthroughChain(name) })
				if err != nil {
					err = s.leftOut(fmt.Errorf("%s: %w", name, err))
				}
				if !yield(c, err) {
					return
				}
			}
		}
	}
}

// covers reports whether a service of the mesh is behind an AUTO_PASSTHROUGH
// server.
func (s *gatewayServer) covers(svc *service) bool {
	return !svc.of[0].MeshExternal && slices.ContainsFunc(s.hosts, func(h serverHost) bool {
		return h.admits(svc.namespace) && lower(svc.host).SubsetOf(h.name)
	})
}

// passedNames returns the names of the clusters of a service behind AUTO_PASSTHROUGH
// servers, which are the server names that clients send.
func (st *state) passedNames(p *proxy, svc *service) []string {
	var out []string
	m, _ := st.ruleOf(p, svc.host, svc.namespace)
	for _, port := range svc.ports {
		if port.Protocol == registry.ProtocolUDP {
			continue
		}
		out = append(out, envoy.SNIName(port.Number, "", svc.host))
		for _, subset := range m.subsetNames() {
			out = append(out, envoy.SNIName(port.Number, subset, svc.host))
		}
	}
	return out
}
