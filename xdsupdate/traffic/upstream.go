// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// cluster returns the cluster of a name as a proxy gets it; nil: none. A gRPC client
// is answered for every name that a route can have, if need be by a cluster without
// endpoints: without an answer it holds back all calls, not just those of the route.
func (st *state) cluster(p *proxy, name string) *clusterv3.Cluster {
	if c := constantCluster(p, name); c != nil {
		return c
	}
	if u := st.upstream(p, name); u != nil {
		if c := u.Cluster(); c != nil {
			return c
		}
	}
	if p.role == grpcClient && clusterNamed(name) {
		return envoy.EmptyCluster(name)
	}
	return nil
}

// assignment returns the load assignment of a name as a proxy gets it; nil: none.
func (st *state) assignment(p *proxy, name string) *endpointv3.ClusterLoadAssignment {
	u := st.upstream(p, name)
	if u != nil && u.EDS() {
		return u.LoadAssignment()
	}
	if p.role == grpcClient && clusterNamed(name) && (u == nil || u.Cluster() == nil) {
		return &endpointv3.ClusterLoadAssignment{ClusterName: name}
	}
	return nil
}

func clusterNamed(name string) bool {
	_, _, _, ok := envoy.ParseSubsetClusterName(name)
	return ok
}

// upstream returns what a name stands for; nil: nothing that the proxy sees.
func (st *state) upstream(p *proxy, name string) *envoy.Upstream {
	u := st.upstreamNamed(p, name)
	if u != nil {
		endpoints := st.world.endpoints(u.Service.Hostname, u.Service.Attributes.Namespace)
		u.Endpoints, u.Identities = slices.Collect(endpoints.All()), endpoints.ServiceAccounts()
	}
	return u
}

func (st *state) upstreamNamed(p *proxy, name string) *envoy.Upstream {
	port, subset, host, ok := envoy.ParseSubsetClusterName(name)
	passed := false
	if !ok {
		if port, subset, host, passed = envoy.ParseSNIName(name); !passed {
			return nil
		}
	}
	svc := st.scopeOf(p).service(host)
	if svc == nil || svc.host != host || !st.clustersOf(p).of(svc, passed) {
		return nil
	}
	at, ok := svc.port(port)
	if !ok || at.Protocol == registry.ProtocolUDP {
		return nil
	}
	m, _ := st.ruleOf(p, svc.host, svc.namespace)
	u := st.upstreamOf(p, at, m, subset)
	if u != nil {
		u.AutoPassthrough = passed
	}
	return u
}

// upstreamOf returns a port of a service, or a subset of it, under a rule, which may
// be nil; nil if the rule has no such subset. Its endpoints are not set.
func (st *state) upstreamOf(p *proxy, at servicePort, m *rule, subset string) *envoy.Upstream {
	s := m.subset(subset)
	if subset != "" && s == nil {
		return nil
	}
	u := &envoy.Upstream{
		Service: at.of, Port: at.Port, Subset: subset, Labels: s.GetLabels(),
		Policy:           envoy.TrafficPolicy(m.trafficPolicy(), at.Number, s.GetTrafficPolicy(), st.settings.mesh),
		SelectedByLabels: m.selective(),
		Mesh:             st.settings.mesh,
		Networks:         st.settings.gateways,
		OutliersForGRPC:  st.settings.outliersForGRPC,
		Gateway:          p.role == router,
		Proxy:            p.vantage(),
	}
	if p.role == grpcClient {
		u.Client = envoy.ForGRPC
	}
	return u
}

// vantage returns what of the proxy counts for clusters.
func (p *proxy) vantage() *registry.Proxy {
	return &registry.Proxy{
		Namespace: p.namespace, ClusterID: p.cluster, IPAddresses: p.addresses, Labels: p.labels, Locality: p.locality, Network: p.network,
	}
}
