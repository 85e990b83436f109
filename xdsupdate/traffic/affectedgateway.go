// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// affect adds all resources of a type for the proxies of a namespace that are accepts. An empty
// namespace or type stands for all.
func (c *affected) affect(namespace, typeURL string, are func(p *proxy) bool) {
	c.everything = append(c.everything, affectedProxies{namespace, typeURL, are})
}

func (g *gateway) affects(c *affected) {
	types := []string{envoy.ListenerType, envoy.RouteType}
	if g.passes() || g.certificate != "" || c.after.settings.options.FilterGatewayClusters {
		types = []string{""}
	}
	for _, typeURL := range types {
		c.affect("", typeURL, func(p *proxy) bool { return p.role == router && g.selects(p) })
	}
}

func (s *sidecar) affects(c *affected) {
	c.affect(c.after.reach(s.namespace), "", func(p *proxy) bool { return p.role != router })
}

func (a *authorizationPolicy) affects(c *affected) {
	c.protected(a.namespace, &a.policyTarget)
	c.serverListeners(c.after.reach(a.namespace), func(p *proxy) bool { return c.selectsServer(a, p) })
}

func (a *requestAuthentication) affects(c *affected) { c.protected(a.namespace, &a.policyTarget) }

// protected adds the listeners of the routers that a policy of a namespace targets.
func (c *affected) protected(namespace string, target *policyTarget) {
	root := c.after.settings.rootNamespace()
	c.affect(c.after.reach(namespace), envoy.ListenerType, func(p *proxy) bool {
		return p.role == router && target.concerns(namespace, p, root)
	})
}

// authorizersOf adds the listeners of all routers if the host is the service of an authorization
// provider.
func (c *affected) authorizersOf(host registry.Hostname) {
	if c.after.settings.isAuthorizer(host) {
		c.affect("", envoy.ListenerType, func(p *proxy) bool { return p.role == router })
	}
}

// passes reports whether some Gateway has an AUTO_PASSTHROUGH server.
func (c *affected) passes() bool {
	return slices.ContainsFunc(c.states(), func(st *state) bool { return slices.ContainsFunc(st.gateways, (*gateway).passes) })
}

// passingListeners adds the listeners of Gateways with AUTO_PASSTHROUGH servers, because these have
// a filter chain for each service.
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

// passes reports whether the Gateway has an AUTO_PASSTHROUGH server.
func (g *gateway) passes() bool {
	return g.passing() > 0
}
