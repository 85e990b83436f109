// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// place is the context that a VirtualService's routes are built for.
type place struct {
	// gateway is "namespace/name", or objects.MeshGateway.
	gateway string
	// port is the port of the route configuration, or at a gateway the port of the server.
	port uint32
	// tls is set if the gateway's server uses HTTPS.
	tls bool
	// service is the service of a gRPC client's route configuration. It is nil for other clients.
	service *mesh.Service
}

// allRuleRoutes returns the routes for clients that have rejected none, and the positions of their
// rules among all rules of the VirtualService, which are unknown for routes that fail all requests.
// Build builds the routes of rules.
func (st *state) allRuleRoutes(
	p *proxy, v *objects.VirtualService, at place, build func(*xdsbuild.RouteScope, []*networking.HTTPRoute) []*routev3.Route,
) (routes []*routev3.Route, positions []int32, missed []error) {
	limits := st.settings.limits
	scope := st.rulesScope(p, v, at)
	missing := &leftOutRules{of: v, places: make(map[*networking.HTTPRoute]objects.RulePlace)}
	scope.LeftOut, scope.MaxBytes = missing.add, limits.RouteBytes
	routes, err := checkedRoutes(scope, v, func() []*routev3.Route {
		rules, places := st.PlacedRules(v)
		at := 0
		scope.Made = func(rule *networking.HTTPRoute, routes int) {
			for rules[at] != rule {
				at++
			}
			for len(positions) < routes {
				positions = append(positions, int32(at)) //nolint:gosec // the number of rules is limited
			}
		}
		for i, r := range rules {
			if missing.places[r] = places[i]; places[i].Failing {
				missing.addAt(places[i], tooManyMatches(limits.Matches))
			}
		}
		return build(scope, rules)
	})
	if err == nil && exceeds(len(routes), limits.Routes) {
		routes, err = scope.FailingRoutes(), leftOut(v.Config, "spec.http", failedRequests(tooManyRoutes(limits.Routes)))
	}
	if err != nil {
		missing.found = append(missing.found, err)
	}
	if len(positions) != len(routes) {
		positions = nil
	}
	return routes, positions, missing.found
}

// defaultRoute returns the route for a service without a VirtualService.
func (st *state) defaultRoute(p *proxy, svc *mesh.Service, at place) *routev3.Route {
	cluster := envoy.ClusterName(at.port, svc.Host)
	return st.routeScope(p, svc.Namespace, at).DefaultRoute(cluster, st.hashOf(p, svc.Host, svc, at.port, ""))
}

// rulesScope is routeScope for the rules of a VirtualService.
func (st *state) rulesScope(p *proxy, v *objects.VirtualService, at place) *xdsbuild.RouteScope {
	out := st.routeScope(p, v.Namespace, at)
	out.WholeElements = objects.MatchesElements(v.Config)
	return out
}

// routeScope returns the input for building the routes of an object in a namespace with package
// envoy.
func (st *state) routeScope(p *proxy, namespace string, at place) *xdsbuild.RouteScope {
	out := &xdsbuild.RouteScope{
		Port: at.port, Gateway: at.gateway, TLS: at.tls, Namespace: p.Namespace, Labels: p.Labels,
		Retries: st.settings.Mesh.GetDefaultHttpRetryPolicy(),
		Cluster: func(d *networking.Destination) string { return st.destinationCluster(p, d, namespace, at.port) },
		ConsistentHash: func(d *networking.Destination) *networking.LoadBalancerSettings_ConsistentHashLB {
			host, svc, port := st.destination(p, d, namespace, at.port)
			return st.hashOf(p, host, svc, port, d.GetSubset())
		},
	}
	if p.Role == objects.GRPCClient {
		out.Client = envoy.ForGRPC
		out.ServiceCluster = envoy.ClusterName(at.port, at.service.Host)
	}
	return out
}

// destinationCluster returns the cluster name of a destination in an object of a namespace. It is
// not an error if the proxy does not see the service: the route then references a cluster that does
// not exist.
func (st *state) destinationCluster(p *proxy, d *networking.Destination, namespace string, port uint32) string {
	host, _, port := st.destination(p, d, namespace, port)
	return envoy.SubsetClusterName(port, d.GetSubset(), host)
}

// destination returns the host of a destination, its service, which may be nil, and its port: the
// port in the destination, or else the only port of the service, or else the port of the route
// configuration.
func (st *state) destination(
	p *proxy, d *networking.Destination, namespace string, port uint32,
) (registry.Hostname, *mesh.Service, uint32) {
	host := hostname.Resolve(d.GetHost(), namespace, st.settings.Domain)
	svc := st.destinationService(p, host, namespace)
	if svc != nil {
		host, svc = mesh.Concrete(svc, func(target registry.Hostname) *mesh.Service { return st.destinationService(p, target, namespace) })
	}
	if svc != nil {
		if only := svc.OnlyPort(); only != 0 {
			port = only
		}
	}
	if n := d.GetPort().GetNumber(); n != 0 {
		port = n
	}
	return host, svc, port
}

// destinationService returns the service of a destination in a VirtualService of a namespace, or
// nil.
func (st *state) destinationService(p *proxy, host registry.Hostname, namespace string) *mesh.Service {
	if p.Role == objects.Router {
		return st.serviceFor(p, host, namespace)
	}
	return st.seenBy(p, host)
}
