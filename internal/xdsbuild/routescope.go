// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// meshGateway is the gateway name in a VirtualService for all sidecars and all gRPC clients.
const meshGateway = "mesh"

// RouteScope is the route configuration of a client that the HTTP rules of a VirtualService apply
// to. The same rules give other routes in another scope.
//
// The names in the rules must be complete: hosts of destinations as in the registry, gateways in
// matches as "NAMESPACE/NAME" or "mesh".
type RouteScope struct {
	// Client is the kind of client. Routes of gRPC clients have only fields that all gRPC clients
	// accept, and no features of proxies: mirrors, rewrites, CORS and header operations are
	// omitted, and redirects and direct responses become faults that fail the calls.
	Client envoy.Client
	// ServiceCluster is the cluster of the service of a gRPC client's route configuration. Routes
	// that fail all calls use it, because they need some cluster.
	ServiceCluster string
	// Port is the port of the route configuration, on a gateway the port of the server.
	Port uint32
	// Gateway is the gateway as "NAMESPACE/NAME"; empty means "mesh".
	Gateway string
	// Namespace and Labels are the namespace and the labels of the client's workload.
	Namespace string
	Labels    map[string]string
	// WholeElements makes a path prefix match whole path elements, as Kubernetes specifies: "/a"
	// and "/a/" match /a, /a/ and /a/b, but not /ab. The replacement of a prefix is joined to the
	// rest with one slash. By default a prefix matches any path that begins with it.
	WholeElements bool
	// TLS is set if the clients of the gateway's server use HTTPS.
	TLS bool
	// Retries is the mesh's default retry policy; nil means Istio's.
	Retries *networking.HTTPRetry
	// Cluster returns the name of the cluster of a destination. Nil means SubsetClusterName, with
	// Port as the port of destinations without one.
	Cluster func(*networking.Destination) string
	// ConsistentHash returns the hash for requests to a destination, nil if they are not hashed. A
	// nil function means that no requests are hashed.
	ConsistentHash func(*networking.Destination) *networking.LoadBalancerSettings_ConsistentHashLB
	// LeftOut is called for each route that Routes omits or replaces by one that responds with 500,
	// with the position of the rule and the reason. Nil reports nothing.
	LeftOut func(rule int, reason error)
	// Made is called for each rule and match with routes, in their order, with the number of routes
	// so far, these included. Nil reports nothing.
	Made func(rule, routes int)
	// MaxBytes is the maximum encoded size of the routes, plus a byte for each instruction in the
	// programs of their regular expressions (ProgramSize). As soon as the limit is exceeded, Routes
	// calls LeftOut with the current rule and returns FailingRoutes. 0 means no limit.
	MaxBytes int
}

func (s *RouteScope) cluster(d *networking.Destination) string {
	if s.Cluster != nil {
		return s.Cluster(d)
	}
	port := s.Port
	if n := d.GetPort().GetNumber(); n != 0 {
		port = n
	}
	return envoy.SubsetClusterName(port, d.GetSubset(), registry.Hostname(d.GetHost()))
}

// hashPolicies returns the hash policies for requests to a destination. A hash that clients would
// reject is omitted, because it belongs to the owner of the destination, not of the route.
func (s *RouteScope) hashPolicies(d *networking.Destination) []*routev3.RouteAction_HashPolicy {
	if s.ConsistentHash == nil {
		return nil
	}
	return usableHash(s.ConsistentHash(d))
}

// covers reports whether a match can hold in this scope at all. If a match has gateways, its
// conditions on the source workload are ignored.
func (s *RouteScope) covers(m *networking.HTTPMatchRequest) bool {
	if m.GetPort() != 0 && m.GetPort() != s.Port {
		return false
	}
	if gateways := m.GetGateways(); len(gateways) > 0 {
		return s.among(gateways)
	}
	if n := m.GetSourceNamespace(); n != "" && n != s.Namespace {
		return false
	}
	for key, value := range m.GetSourceLabels() {
		if v, ok := s.Labels[key]; !ok || v != value {
			return false
		}
	}
	return true
}

func (s *RouteScope) among(gateways []string) bool {
	here := s.Gateway
	if here == "" {
		here = meshGateway
	}
	return slices.Contains(gateways, here)
}
