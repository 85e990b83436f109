// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// cluster returns the named cluster as a proxy receives it, or nil. The place is that of the name. A
// gRPC client receives a cluster for every name that a route can have, if necessary without
// endpoints, because otherwise it would delay all calls instead of the route's calls.
func (st *state) cluster(p *proxy, name string, at *clusterPlace) *clusterv3.Cluster {
	if at == nil {
		if c := constantCluster(p, name); c != nil {
			return c
		}
	}
	if u, endpoints := st.upstream(p, at); u != nil {
		if !u.EDS() { // otherwise the cluster does not contain them
			u.Endpoints = slices.Collect(endpoints.All())
		}
		if c := u.Cluster(); c != nil {
			return c
		}
	}
	if p.Role == objects.GRPCClient && clusterNamed(name) {
		return emptyCluster(name)
	}
	return nil
}

// assignment returns the named load assignment as a proxy receives it, or nil.
func (st *state) assignment(p *proxy, name string, at *clusterPlace) *endpointv3.ClusterLoadAssignment {
	u, endpoints := st.upstream(p, at)
	if u != nil {
		u.Endpoints = slices.Collect(endpoints.All())
	}
	if u != nil && u.EDS() {
		return u.LoadAssignment()
	}
	if p.Role == objects.GRPCClient && clusterNamed(name) && (u == nil || u.Cluster() == nil) {
		return &endpointv3.ClusterLoadAssignment{ClusterName: name}
	}
	return nil
}

// plainAssignment reports whether the load assignment of a place is the default one, which the server assembles
// from encoded endpoints. No policy may influence it, and its service must be the only one with the
// host name.
func (st *state) plainAssignment(p *proxy, at *clusterPlace) bool {
	if at == nil || at.subset != nil || at.passed ||
		len(st.world.Named(at.host)) != 1 || at.host != at.port.Of.Hostname || at.port.Of.Resolution != registry.ClientSideLB {
		return false
	}
	u := st.upstreamOf(p, at)
	u.Plaintext = st.takesPlaintext(u, st.world.Endpoints(u.Service))
	return u.EDS() && u.Plain()
}

// eds reports whether the cluster of a place gets its endpoints by a load assignment.
func (st *state) eds(p *proxy, at *clusterPlace) bool { return st.upstreamOf(p, at).EDS() }

func clusterNamed(name string) bool {
	_, _, _, ok := envoy.ParseSubsetClusterName(name)
	return ok
}

// upstream returns the input for the cluster of a place without endpoints, and its endpoints. It is
// nil without a place.
func (st *state) upstream(p *proxy, at *clusterPlace) (*xdsbuild.Upstream, *xdsupdate.ServiceEndpoints) {
	if at == nil {
		return nil, nil
	}
	u := st.upstreamOf(p, at)
	endpoints := st.world.Endpoints(at.port.Of)
	u.Identities, u.MutualTLS = endpoints.ServiceAccounts(), st.takesMutualTLS(at.port.Of, endpoints)
	u.Plaintext = st.takesPlaintext(u, endpoints)
	return u, endpoints
}

// upstreamOf returns the input for a cluster of a proxy, without endpoints.
func (st *state) upstreamOf(p *proxy, at *clusterPlace) *xdsbuild.Upstream {
	u := &xdsbuild.Upstream{
		Service: at.port.Of, Port: at.port.Port, Subset: at.subset.GetName(), Labels: at.subset.GetLabels(),
		Policy:           xdsbuild.TrafficPolicy(at.rule.TrafficPolicy(), at.port.Number, at.subset.GetTrafficPolicy(), st.settings.Mesh),
		SelectedByLabels: at.rule.Selective(),
		Mesh:             st.settings.Mesh,
		Networks:         st.settings.gateways,
		OutliersForGRPC:  st.settings.options.OutliersForGRPC,
		Gateway:          p.Role == objects.Router,
		EncodedMetadata:  true,
		AutoPassthrough:  at.passed,
		Proxy:            p.registryProxy(),
	}
	st.applyPolicies(u, p, *at)
	if p.Role == objects.GRPCClient {
		u.Client = envoy.ForGRPC
	}
	if _, err := st.noRoomForHash(at.rule, at.host); err != nil {
		u.Policy = withoutHash(u.Policy)
	}
	if at.host != u.Service.Hostname { // the first service with this host name spells it differently
		renamed := *u.Service
		renamed.Hostname = at.host
		u.Service = &renamed
	}
	return u
}

// registryProxy returns the properties of the proxy that influence clusters and the addresses of
// services.
func (p *proxy) registryProxy() *registry.Proxy {
	if p.registered != nil {
		return p.registered
	}
	return &registry.Proxy{
		Namespace: p.Namespace, ClusterID: p.cluster, IPAddresses: p.addresses, Labels: p.Labels, Locality: p.locality, Network: p.network,
		DNSCapture: p.allocated, DNSAutoAllocate: p.allocated,
	}
}

// policyTLS returns the TLS settings of BackendTLSPolicies for a port of a host, or nil.
func policyTLS(policies []*objects.DestinationRule, port uint32) *networking.ClientTLSSettings {
	for _, r := range policies {
		for _, at := range r.Spec.GetTrafficPolicy().GetPortLevelSettings() {
			if at.GetPort().GetNumber() == port && at.GetTls() != nil {
				return at.GetTls()
			}
		}
	}
	for _, r := range policies {
		if tls := r.Spec.GetTrafficPolicy().GetTls(); tls != nil {
			return tls
		}
	}
	return nil
}

// applyPolicies sets the TLS settings of BackendTLSPolicies in the policy of a cluster, unless a
// DestinationRule of a user sets TLS. A router also presents the client certificate of its Gateway
// to such servers.
func (st *state) applyPolicies(u *xdsbuild.Upstream, p *proxy, at clusterPlace) {
	policies, _ := st.PoliciesOf(&p.Proxy, at.host, at.port.Of.Attributes.Namespace)
	tls := policyTLS(policies, at.port.Number)
	if tls == nil || u.Policy.GetTls() != nil {
		return
	}
	if u.Policy == nil {
		u.Policy = &networking.TrafficPolicy{}
	}
	u.Policy.Tls = tls // The policy belongs to this cluster alone.
	if p.Role == objects.Router {
		u.Certificate = st.routerOf(p).certificate
	}
}

// Sidecars and gateways follow PeerAuthentications as clients: they use plain text for workloads
// that must not accept mutual TLS.

// takesPlaintext returns a predicate for the endpoints of a service that do not accept mutual TLS
// because of a PeerAuthentication. It is nil if there are none. TLS settings of a DestinationRule
// take precedence (S32).
func (st *state) takesPlaintext(u *xdsbuild.Upstream, endpoints *xdsupdate.ServiceEndpoints) func(*registry.Endpoint) bool {
	svc := u.Service
	if !st.HasPeers() || u.Policy.GetTls() != nil || !st.SomeDisabled(svc.Attributes.Namespace) && (!endpoints.Foreign() || !st.AnyDisabled()) {
		return nil
	}
	return func(e *registry.Endpoint) bool {
		a := e.Attributes()
		return st.PeerMode(cmp.Or(a.Namespace, svc.Attributes.Namespace), a.Labels, e.EndpointPort).Mode == objects.Disable
	}
}

// takesMutualTLS reports whether clusters of a service have to support mutual TLS.
func (st *state) takesMutualTLS(svc *registry.Service, endpoints *xdsupdate.ServiceEndpoints) bool {
	return endpoints.MutualTLS() && (endpoints.Foreign() || !st.AllDisabled(svc.Attributes.Namespace))
}

// ruleFor is ruleOf for a destination. Its service may be nil.
func (st *state) ruleFor(p *proxy, host registry.Hostname, svc *mesh.Service) *objects.Rule {
	namespace := ""
	if svc != nil {
		host, namespace = svc.Host, svc.Namespace
	}
	m, _ := st.RuleOf(&p.Proxy, host, namespace)
	return m
}

// policyOf returns the traffic policy of a destination, or nil. An unknown subset has the policy of
// the service.
func (st *state) policyOf(p *proxy, host registry.Hostname, svc *mesh.Service, port uint32, subset string) *networking.TrafficPolicy {
	m := st.ruleFor(p, host, svc)
	return xdsbuild.TrafficPolicy(m.TrafficPolicy(), port, m.Subset(subset).GetTrafficPolicy(), st.settings.Mesh)
}

// hashOf returns the consistent hash of a destination, whose key its routes need, or nil if there is
// none, the service is nil, or its DestinationRule is left out.
func (st *state) hashOf(
	p *proxy, host registry.Hostname, svc *mesh.Service, port uint32, subset string,
) *networking.LoadBalancerSettings_ConsistentHashLB {
	if svc == nil {
		return nil
	}
	m := st.ruleFor(p, host, svc)
	hash := xdsbuild.ConsistentHash(m.TrafficPolicy(), port, m.Subset(subset).GetTrafficPolicy())
	if hash != nil && p.leaving != nil {
		if by, _ := m.Owner(m.Subset(subset)); p.leaves(by.Config, by) != ads.Included {
			return nil
		}
	}
	return hash
}
