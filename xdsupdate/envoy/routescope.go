// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// meshGateway is the gateway name in a VirtualService that stands for every
// sidecar and every gRPC client.
const meshGateway = "mesh"

// RouteScope is where the HTTP rules of a VirtualService are put to use: a route
// configuration of a client. The same rules give other routes elsewhere.
//
// The names in the rules must be complete: hosts of destinations as the registry
// has them, gateways in matches as "NAMESPACE/NAME" or "mesh".
type RouteScope struct {
	// Client is the kind of client. For gRPC clients there are only forms that all of
	// them accept, and nothing that they do not do: mirrors, rewrites, CORS and
	// header operations are left out, and redirects and direct responses are faults
	// that fail the calls.
	Client Client
	// ServiceCluster is the cluster of the service that the route configuration of a
	// gRPC client is for: routes that fail all calls need some cluster.
	ServiceCluster string
	// Port is the port that the route configuration is for, on a gateway that of
	// the server.
	Port uint32
	// Gateway is the gateway as "NAMESPACE/NAME"; empty means "mesh".
	Gateway string
	// Namespace and Labels are those of the workload beside the client.
	Namespace string
	Labels    map[string]string
	// WholeElements: a prefix of a path matches whole elements, as Kubernetes wants it. "/a" and
	// "/a/" match /a, /a/ and /a/b, and not /ab; what replaces the prefix is joined to the rest
	// by one slash. By default it matches any path that begins with it.
	WholeElements bool
	// TLS says that the clients of the gateway's server speak HTTPS.
	TLS bool
	// Retries is the mesh's default retry policy; nil means Istio's.
	Retries *networking.HTTPRetry
	// Cluster returns the name of the cluster of a destination. Nil means that of
	// SubsetClusterName, with Port as the port of destinations without one.
	Cluster func(*networking.Destination) string
	// ConsistentHash returns how the requests to a destination are hashed, or nil
	// if they are not; nil means that none are.
	ConsistentHash func(*networking.Destination) *networking.LoadBalancerSettings_ConsistentHashLB
	// LeftOut is called with the rule of each route that Routes replaces by one that
	// answers with 500, or leaves out, and the reason; nil: it is not reported.
	LeftOut func(rule *networking.HTTPRoute, reason error)
	// MaxBytes is how many bytes the routes may have, encoded, with a byte for each
	// instruction of the programs of their regular expressions (ProgramSize). If they have more, Routes
	// returns FailingRoutes, as soon as it knows, and LeftOut is called with the rule at
	// which that is. 0: any number.
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
	return SubsetClusterName(port, d.GetSubset(), registry.Hostname(d.GetHost()))
}

// hashPolicies returns how requests to a destination are hashed. A hash that clients
// would refuse is left out: it is of the destination's owner, not of the route's.
func (s *RouteScope) hashPolicies(d *networking.Destination) []*routev3.RouteAction_HashPolicy {
	if s.ConsistentHash == nil {
		return nil
	}
	return usableHash(s.ConsistentHash(d))
}

// covers reports whether a match can hold here at all. Gateways in a match make
// what it says of the source void.
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
