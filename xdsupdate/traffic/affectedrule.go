// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"github.com/pilotkit/pilotkit/registry"
)

func (r *destinationRule) affects(c *affected) { c.rulesFor(r.host) }

// rulesFor adds the resources that DestinationRules for a host influence. The host may be a
// wildcard. The result covers all rules for the host before and after the push, so it is added once.
func (c *affected) rulesFor(host registry.Hostname) {
	if _, again := c.ruled[host]; again {
		return
	}
	c.ruled[host] = struct{}{}
	for _, svc := range c.matching(host) {
		c.upstream(svc)
		if c.hashed(lower(svc.Hostname)) {
			c.routes(svc, "not routers", func(p *proxy) bool { return p.role != router })
		}
	}
	c.leadingTo(host)
	c.passingListeners()
}

// reaches adds the resources of wildcard DestinationRules that cover a changed service, if a rule
// is limited to a part of its services. The changed service can displace another one from that
// part.
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
					c.rulesFor(m.of[0].host)
				}
			}
		}
	}
}

// leadingTo adds the resources of VirtualServices that route to a host, which may be a wildcard, if
// they depend on the host's DestinationRules. Hash keys and TCP settings do.
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
			if r.hashes {
				return true
			}
		}
	}
	return false
}
