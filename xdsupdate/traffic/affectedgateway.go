// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

func (c *affected) gateways(changed ...*gateway) {
	for _, g := range changed {
		if g == nil {
			continue
		}
		clusters := g.passes() || g.certificate != "" || c.after.settings.filterGatewayClusters
		c.everything = append(c.everything, func(p *proxy, typeURL string) bool {
			return p.role == router && g.selects(p) &&
				(clusters || typeURL == envoy.ListenerType || typeURL == envoy.RouteType)
		})
	}
}

func (c *affected) sidecars(changed ...*sidecar) {
	for _, s := range changed {
		if s == nil {
			continue
		}
		root := s.namespace == c.after.settings.rootNamespace()
		c.everything = append(c.everything, func(p *proxy, _ string) bool {
			return p.role != router && (root || p.namespace == s.namespace)
		})
	}
}

// authorizations adds the listeners of the routers that policies count for.
func (c *affected) authorizations(changed ...*authorizationPolicy) {
	for _, a := range changed {
		if a == nil {
			continue
		}
		root := c.after.settings.rootNamespace()
		c.protected(a.namespace, &a.policyTarget)
		c.serverListeners(func(p *proxy) bool {
			return (a.namespace == root || a.namespace == p.namespace) && c.selectsServer(a, p)
		})
	}
}

// requestAuthentications adds the listeners of the routers that objects count for.
func (c *affected) requestAuthentications(changed ...*requestAuthentication) {
	for _, a := range changed {
		if a != nil {
			c.protected(a.namespace, &a.policyTarget)
		}
	}
}

// protected adds the listeners of the routers that a policy of a namespace is for.
func (c *affected) protected(namespace string, target *policyTarget) {
	root := c.after.settings.rootNamespace()
	c.everything = append(c.everything, func(p *proxy, typeURL string) bool {
		return typeURL == envoy.ListenerType && p.role == router && target.concerns(namespace, p, root)
	})
}

// authorizersOf adds the listeners that CUSTOM policies protect, if a provider of theirs is the service of a name.
func (c *affected) authorizersOf(host registry.Hostname) {
	if c.after.settings.isAuthorizer(host) {
		c.everything = append(c.everything, func(p *proxy, typeURL string) bool { return typeURL == envoy.ListenerType && p.role == router })
	}
}

// passes reports whether some Gateway passes connections on by their server names.
func (c *affected) passes() bool {
	return slices.ContainsFunc(c.states(), func(st *state) bool { return slices.ContainsFunc(st.gateways, (*gateway).passes) })
}

// passingListeners adds the listeners that have a filter chain for each service.
func (c *affected) passingListeners() {
	for _, st := range c.states() {
		for _, g := range st.gateways {
			if !g.passes() {
				continue
			}
			for _, spec := range g.spec.GetServers() {
				for _, port := range c.targets.ports(spec.GetPort().GetNumber()) {
					c.listeners(spec, port, "", nil)
				}
			}
		}
	}
}

// passes reports whether a server passes connections on by their server names.
func (g *gateway) passes() bool {
	return g.passing() > 0
}
