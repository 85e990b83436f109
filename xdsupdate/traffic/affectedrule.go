// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

func (c *affected) rules(changed ...*destinationRule) {
	for _, r := range changed {
		if r == nil {
			continue
		}
		if _, again := c.ruled[r.host]; !again {
			c.ruled[r.host] = struct{}{}
			c.rulesFor(r.host)
		}
	}
}

// rulesFor adds what rules for a host are about, which may be a wildcard: those of the
// host before and after, however many of them have changed.
func (c *affected) rulesFor(host registry.Hostname) {
	for _, svc := range c.matching(host) {
		c.clusters(svc, envoy.ClusterType)
		c.clusters(svc, envoy.LoadAssignmentType)
		if c.hashed(lower(svc.Hostname)) {
			c.routes(svc, "not routers", func(p *proxy) bool { return p.role != router })
		}
	}
	c.leadingTo(host)
	c.passingListeners()
}

// reaches adds what rules for wildcards are about that cover a changed service, if there is
// not room for all of their services: with other services it is others that there is room for.
func (c *affected) reaches() {
	looked := make(map[*rule]struct{})
	for _, host := range c.services {
		for h := range c.before.rules.hostsAbout(lower(host)) {
			for _, m := range h.merged {
				if _, again := looked[m]; again || !m.of[0].host.IsWildcard() {
					continue
				}
				looked[m] = struct{}{}
				if c.before.reachOf(m) != nil || c.after.reachOf(m) != nil {
					c.rules(m.of...)
				}
			}
		}
	}
}

// leadingTo adds what VirtualServices say of a host, which may be a wildcard, if
// that depends on the rules for it: keys of hashes, and TCP settings.
func (c *affected) leadingTo(host registry.Hostname) {
	for _, st := range c.states() {
		names := []registry.Hostname{host}
		if host.IsWildcard() {
			names = nil
			for key := range st.finder.lists.All() {
				if name := registry.Hostname(key.name); key.by == byDestination && name.SubsetOf(host) {
					names = append(names, name)
				}
			}
		}
		for _, name := range names {
			hashed := c.hashed(name)
			for _, alias := range related(st.world, name) {
				for _, v := range st.finder.leadingTo(alias) {
					if hashed || len(v.spec.GetTcp())+len(v.spec.GetTls()) > 0 {
						c.virtualService(v)
					}
				}
			}
		}
	}
}

// hashed reports whether some rule for a host name has a consistent hash.
func (c *affected) hashed(name registry.Hostname) bool {
	for _, st := range c.states() {
		for r := range st.rules.about(name) {
			if hashes(r.spec) {
				return true
			}
		}
	}
	return false
}

func hashes(r *networking.DestinationRule) bool {
	policy := func(p *networking.TrafficPolicy) bool {
		return p.GetLoadBalancer().GetConsistentHash() != nil ||
			slices.ContainsFunc(p.GetPortLevelSettings(), func(port *networking.TrafficPolicy_PortTrafficPolicy) bool {
				return port.GetLoadBalancer().GetConsistentHash() != nil
			})
	}
	return policy(r.GetTrafficPolicy()) ||
		slices.ContainsFunc(r.GetSubsets(), func(s *networking.Subset) bool { return policy(s.GetTrafficPolicy()) })
}
