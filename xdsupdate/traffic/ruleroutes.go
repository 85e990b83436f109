// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
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
	missing := &leftOutRules{of: v, last: -1}
	scope.LeftOut, scope.MaxBytes = missing.add, limits.RouteBytes
	routes, err := checkedRoutes(scope, v, func() []*routev3.Route {
		rules, places := st.PlacedRules(v)
		scope.Made = func(rule, routes int) {
			for len(positions) < routes {
				positions = append(positions, int32(rule)) //nolint:gosec // the number of rules is limited
			}
		}
		missing.places = places
		for _, at := range places {
			if at.Failing {
				missing.addAt(at, tooManyMatches(limits.Matches))
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

// Clients reject a route configuration or a listener as a whole, even if only one of several
// contributing objects is at fault. The contribution of each object is therefore validated
// separately (xdsbuild.Check). A route that fails validation answers with 500, a filter chain that
// fails it is left out, and the rest is sent. Each such part is reported by a LeftOutError that
// accompanies the resource. The server reports these errors. Policies.Ineffective finds them
// without any client.

// LeftOutError says that a part of an object is left out of a resource, or answered with an error
// in it, because clients would reject the resource. Policies returns such errors, joined with
// others, together with the resource, and the server reports them.
type LeftOutError struct {
	Ineffective
	// Err is the reason, without the consequences for the part.
	Err error
}

// Error returns the text of Ineffective.
func (e *LeftOutError) Error() string { return e.String() }

// Unwrap returns Err.
func (e *LeftOutError) Unwrap() error { return e.Err }

// leftOut returns the error for a part of an object that is left out. An empty field stands for the
// whole object.
func leftOut(c *configstore.Config, field string, reason error) error {
	return &LeftOutError{
		Ineffective{Kind: c.GroupVersionKind, Namespace: c.Namespace, Name: c.Name, Field: field, Reason: reason.Error()}, reason,
	}
}

// Errors that describe the consequences for the part.

func failedRequests(reason error) error {
	return fmt.Errorf("its requests are answered with 500: %w", reason)
}

func closedConnections(reason error) error {
	return fmt.Errorf("its connections are closed: %w", reason)
}

func noCluster(name string, reason error) error {
	return fmt.Errorf("cluster %s is left out: %w", name, reason)
}

func notHashed(name string, reason error) error {
	return fmt.Errorf("the requests to cluster %s are not hashed: %w", name, reason)
}

// leftOutRules collects the errors for the routes of a VirtualService, at most one for each rule.
type leftOutRules struct {
	of *objects.VirtualService
	// places are the origins of the rules, including rules of delegates.
	places []objects.RulePlace
	last   int
	found  []error
}

func (l *leftOutRules) add(rule int, reason error) {
	if rule != l.last {
		l.last = rule
		l.addAt(l.places[rule], reason)
	}
}

func (l *leftOutRules) addAt(place objects.RulePlace, reason error) {
	if place.Delegate != nil {
		reason = fmt.Errorf("delegate %s: %w", place.Delegate, reason)
	}
	l.found = append(l.found, leftOut(l.of.Config, objects.Element("spec.http", place.At), failedRequests(reason)))
}

// checkedRoutes returns the routes that build returns or, if it panics, routes that fail all
// requests, with an error.
func checkedRoutes(scope *xdsbuild.RouteScope, v *objects.VirtualService, build func() []*routev3.Route) (routes []*routev3.Route, err error) {
	if p := guard.Call(func() { routes = build() }); p != nil {
		return scope.FailingRoutes(), leftOut(v.Config, "spec.http", p)
	}
	return routes, nil
}
