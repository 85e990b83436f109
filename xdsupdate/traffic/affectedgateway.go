// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// affect adds all resources of a type for the proxies of a namespace that are accepts. An empty
// namespace or type stands for all.
func (c *affected) affect(namespace, typeURL string, are func(p *proxy) bool) {
	c.everything = append(c.everything, affectedProxies{namespace, typeURL, are})
}

func (c *affected) gateway(g *objects.Gateway) {
	types := []string{envoy.ListenerType, envoy.RouteType}
	if g.Passes() || g.Certificate != "" || c.after.settings.options.FilterGatewayClusters {
		types = []string{""}
	}
	for _, typeURL := range types {
		c.affect("", typeURL, func(p *proxy) bool { return p.Role == objects.Router && g.Selects(&p.Proxy) })
	}
}

func (c *affected) sidecar(s *objects.Sidecar) {
	c.affect(c.after.Reach(s.Namespace), "", func(p *proxy) bool { return p.Role != objects.Router })
}

func (c *affected) authorizationPolicy(a *objects.AuthorizationPolicy) {
	c.protected(a.Namespace, &a.PolicyTarget)
	c.serverListeners(c.after.Reach(a.Namespace), func(p *proxy) bool { return c.selectsServer(a, p) })
}

func (c *affected) requestAuthentication(a *objects.RequestAuthentication) {
	c.protected(a.Namespace, &a.PolicyTarget)
}

// protected adds the listeners of the routers that a policy of a namespace targets.
func (c *affected) protected(namespace string, target *objects.PolicyTarget) {
	root := c.after.settings.RootNamespace()
	c.affect(c.after.Reach(namespace), envoy.ListenerType, func(p *proxy) bool {
		return p.Role == objects.Router && target.Concerns(namespace, &p.Proxy, root)
	})
}

// authorizersOf adds the listeners of all routers if the host is the service of an authorization
// provider.
func (c *affected) authorizersOf(host registry.Hostname) {
	if c.after.settings.isAuthorizer(host) {
		c.affect("", envoy.ListenerType, func(p *proxy) bool { return p.Role == objects.Router })
	}
}

// passes reports whether some Gateway has an AUTO_PASSTHROUGH server.
func (c *affected) passes() bool {
	return slices.ContainsFunc(c.states(), func(st *state) bool { return slices.ContainsFunc(st.Gateways, (*objects.Gateway).Passes) })
}

// passingListeners adds the listeners of Gateways with AUTO_PASSTHROUGH servers, because these have
// a filter chain for each service.
func (c *affected) passingListeners() {
	for _, st := range c.states() {
		for _, g := range st.Gateways {
			if !g.Passes() {
				continue
			}
			for _, spec := range g.Spec.GetServers() {
				for _, port := range c.clients.ports(spec.GetPort().GetNumber()) {
					c.listeners(spec, port, "", nil)
				}
			}
		}
	}
}
