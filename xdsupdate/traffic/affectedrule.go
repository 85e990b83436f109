// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

func (c *affected) destinationRule(r *objects.DestinationRule) { c.rulesFor(r.Host) }

// rulesFor adds the resources that DestinationRules for a host influence. The host may be a
// wildcard. The result covers all rules for the host before and after the push, so it is added once.
func (c *affected) rulesFor(host registry.Hostname) {
	if _, again := c.ruled[host]; again {
		return
	}
	c.ruled[host] = struct{}{}
	for _, svc := range c.matching(host) {
		c.upstream(svc)
		if c.hashed(hostname.Lower(svc.Hostname)) {
			c.routes(svc, "not routers", func(p *proxy) bool { return p.Role != objects.Router })
		}
	}
	c.leadingTo(host)
	c.passingListeners()
}

// reaches adds the resources of wildcard DestinationRules that cover a changed service, if a rule
// is limited to a part of its services. The changed service can displace another one from that
// part.
func (c *affected) reaches() {
	looked := make(map[*objects.Rule]struct{})
	for _, host := range c.services {
		for h := range c.before.Rules.HostsAbout(hostname.Lower(host)) {
			for _, m := range h.Merged {
				if _, again := looked[m]; again || !m.Of[0].Host.IsWildcard() {
					continue
				}
				looked[m] = struct{}{}
				if c.before.reachOf(m) != nil || c.after.reachOf(m) != nil {
					c.rulesFor(m.Of[0].Host)
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
			names = slices.Collect(st.Finder.DestinationsBelow(host))
		}
		for _, name := range names {
			hashed := c.hashed(name)
			for _, alias := range mesh.Related(st.world, name) {
				for _, v := range st.Finder.LeadingTo(alias) {
					if hashed || len(v.Spec.GetTcp())+len(v.Spec.GetTls()) > 0 {
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
		for r := range st.Rules.About(name) {
			if r.Hashes {
				return true
			}
		}
	}
	return false
}
