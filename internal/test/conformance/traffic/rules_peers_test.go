// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	security "istio.io/api/security/v1beta1"
)

// s30: a cluster of a namespace with any policy of workloads or ports that is not DISABLE is ready
// for mutual TLS, regardless of the namespace's own policy. The endpoints that accept it are
// compared with the recorded ones.
func (c *comparison) s30() {
	for _, want := range c.want[clusters] {
		n, ok := parseCluster(name(clusters, want))
		got := find(clusters, c.got[clusters], name(clusters, want))
		if !ok || got == nil || want["transportSocketMatches"] != nil || got["transportSocketMatches"] == nil || !c.someWorkloadPolicy(n.host) {
			continue
		}
		if c.someMutual(name(clusters, want)) {
			want["transportSocketMatches"] = got["transportSocketMatches"]
		}
	}
}

// someWorkloadPolicy reports whether a policy for some workloads, or their ports, of the namespace
// of a host is not DISABLE.
func (c *comparison) someWorkloadPolicy(host string) bool {
	for _, s := range c.of(host, c.proxy) {
		for _, p := range c.peers {
			spec := p.Spec.(*security.PeerAuthentication)
			if p.Namespace != s.entry.Namespace || len(spec.GetSelector().GetMatchLabels()) == 0 {
				continue
			}
			modes := []security.PeerAuthentication_MutualTLS_Mode{spec.GetMtls().GetMode()}
			for _, port := range spec.GetPortLevelMtls() {
				modes = append(modes, port.GetMode())
			}
			for _, m := range modes {
				if m == security.PeerAuthentication_MutualTLS_STRICT || m == security.PeerAuthentication_MutualTLS_PERMISSIVE {
					return true
				}
			}
		}
	}
	return false
}
