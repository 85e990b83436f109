// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// clusterNames returns the names of all clusters of a proxy, or of its load assignments, sorted. It
// includes DNS services without endpoints, although these have no cluster.
func (st *state) clusterNames(p *proxy, typeURL string) []string {
	var out []string
	if typeURL == envoy.ClusterType {
		for _, c := range constantClusters(p) {
			out = append(out, c.GetName())
		}
	}
	for at := range st.clusterPlaces(p) {
		if typeURL == envoy.ClusterType || st.eds(p, &at) {
			out = append(out, at.name())
		}
	}
	slices.Sort(out)
	return out
}

// coversCluster reports whether a name is one of clusterNames for clusters.
func (st *state) coversCluster(p *proxy, name string) bool {
	return st.clusterPlaceOf(p, name) != nil || constantCluster(p, name) != nil
}

// clusterPlace identifies the service port or subset of a cluster.
type clusterPlace struct {
	// host is the service's host name, in the spelling that routes use.
	host registry.Hostname
	port mesh.ServicePort
	rule *objects.Rule // nil if there is none
	// subset is nil for the service itself.
	subset *networking.Subset
	// passed is set for clusters that an AUTO_PASSTHROUGH server finds by SNI.
	passed bool
}

func (c clusterPlace) name() string {
	if c.passed {
		return envoy.SNIName(c.port.Number, c.subset.GetName(), c.host)
	}
	return envoy.SubsetClusterName(c.port.Number, c.subset.GetName(), c.host)
}

// clusterPlaces yields the places of all clusters of a proxy.
func (st *state) clusterPlaces(p *proxy) iter.Seq[clusterPlace] {
	return func(yield func(clusterPlace) bool) {
		clusters := st.clustersOf(p)
		for _, svc := range st.scopeOf(p).Sorted {
			m, _ := st.RuleOf(&p.Proxy, svc.Host, svc.Namespace)
			for _, passed := range []bool{false, true} {
				if clusters.of(svc, passed) && !st.places(m, svc, passed, yield) {
					return
				}
			}
		}
	}
}

// places yields the places of a service under a DestinationRule, which may be nil.
func (st *state) places(m *objects.Rule, svc *mesh.Service, passed bool, yield func(clusterPlace) bool) bool {
	subsets := st.subsetsOf(m, svc.Host)
	for _, port := range svc.Ports {
		if port.Protocol == registry.ProtocolUDP {
			continue
		}
		if !yield(clusterPlace{host: svc.Host, port: port, rule: m, passed: passed}) {
			return false
		}
		for _, s := range subsets {
			if !yield(clusterPlace{host: svc.Host, port: port, rule: m, subset: s, passed: passed}) {
				return false
			}
		}
	}
	return true
}

// clusterPlaceOf returns the place of a cluster name, or nil if the proxy has no such cluster.
func (st *state) clusterPlaceOf(p *proxy, name string) *clusterPlace {
	port, subset, host, ok := envoy.ParseSubsetClusterName(name)
	passed := false
	if !ok {
		if port, subset, host, passed = envoy.ParseSNIName(name); !passed {
			return nil
		}
	}
	svc := st.scopeOf(p).Service(host)
	if svc == nil || svc.Host != host || !st.clustersOf(p).of(svc, passed) {
		return nil
	}
	at, ok := svc.Port(port)
	if !ok || at.Protocol == registry.ProtocolUDP {
		return nil
	}
	m, _ := st.RuleOf(&p.Proxy, svc.Host, svc.Namespace)
	s := st.subsetOf(m, host, subset)
	if subset != "" && s == nil {
		return nil
	}
	return &clusterPlace{host: host, port: at, rule: m, subset: s, passed: passed}
}

// clusterScope selects the services in a proxy's scope that have clusters.
type clusterScope struct {
	// used restricts clusters to services with these hosts, in lower case. Nil stands for all
	// services.
	used objects.Destinations
	// passing adds the clusters that AUTO_PASSTHROUGH servers find by SNI.
	passing bool
}

// of reports whether a service has clusters, or for passed, clusters found by SNI.
func (c clusterScope) of(svc *mesh.Service, passed bool) bool {
	if passed {
		return c.passing && !svc.Of[0].MeshExternal
	}
	if c.used == nil {
		return true
	}
	_, used := c.used[hostname.Lower(svc.Host)]
	return used
}

// clustersOf returns the cluster scope of a proxy. Only routers can have a restricted scope.
func (st *state) clustersOf(p *proxy) clusterScope {
	if p.Role != objects.Router {
		return clusterScope{}
	}
	return st.clusterScopes.Get(p, func() clusterScope { return st.newClusterScope(p) })
}

func (st *state) newClusterScope(p *proxy) clusterScope {
	var c clusterScope
	if st.settings.options.FilterGatewayClusters {
		c.used = make(objects.Destinations)
	}
	for _, g := range st.GatewaysOf(&p.Proxy) {
		c.passing = c.passing || g.Passes()
		if c.used == nil {
			continue
		}
		for _, v := range st.VirtualServicesFor(g.String(), p.Namespace) {
			for host, ports := range st.DestinationsOf(v) {
				for _, name := range mesh.Meanings(st.world, host) {
					c.used[name] = ports
				}
			}
		}
	}
	return c
}

// checkedCluster returns the cluster of a place as a proxy receives it, or nil if there is none, and
// the errors for the cluster, or parts of its policy, that are left out. A cluster with an invalid
// policy is left out as a whole, because without its TLS settings the proxy would connect in plain
// text.
func (st *state) checkedCluster(p *proxy, name string, at *clusterPlace) (*clusterv3.Cluster, []error) {
	if at != nil {
		if err := st.noRoomForPolicy(at.rule, at.host); err != nil {
			return nil, []error{st.clusterLeftOut(p, at, noCluster(name, err))}
		}
	}
	c, err := xdsbuild.Try(p.client(), func() *clusterv3.Cluster { return st.cluster(p, name, at) })
	if err != nil {
		return nil, []error{st.clusterLeftOut(p, at, noCluster(name, err))}
	}
	if at == nil || at.rule == nil {
		return c, nil
	}
	var missing []error
	if at.subset == nil {
		missing = st.noRoomForSubsets(at.rule, at.host)
		if first, err := st.noRoomForHash(at.rule, at.host); first {
			missing = append(missing, st.clusterLeftOut(p, at, err))
		}
	}
	hash := xdsbuild.ConsistentHash(at.rule.TrafficPolicy(), at.port.Number, at.subset.GetTrafficPolicy())
	if err := xdsbuild.CheckHash(hash); err != nil {
		missing = append(missing, st.clusterLeftOut(p, at, notHashed(name, err)))
	}
	return c, missing
}

// clusterLeftOut adds to an error the object and field that the policy of a cluster comes from. A
// cluster without a policy object keeps the error as it is.
func (st *state) clusterLeftOut(p *proxy, at *clusterPlace, reason error) error {
	if at == nil {
		return reason
	}
	if at.rule == nil {
		if policies, _ := st.PoliciesOf(&p.Proxy, at.host, at.port.Of.Attributes.Namespace); len(policies) > 0 {
			return leftOut(policies[0].Config, "spec.trafficPolicy", reason)
		}
		return reason
	}
	owner, field := at.rule.Owner(at.subset)
	return leftOut(owner.Config, field, reason)
}

// constantClusters returns the clusters that a proxy has independently of services.
func constantClusters(p *proxy) []*clusterv3.Cluster {
	switch p.Role {
	case objects.SidecarProxy:
		return []*clusterv3.Cluster{xdsbuild.BlackHoleCluster(), xdsbuild.PassthroughCluster()}
	case objects.Router:
		return []*clusterv3.Cluster{xdsbuild.BlackHoleCluster()}
	default:
		return nil
	}
}

// constantCluster returns the named one of them, or nil.
func constantCluster(p *proxy, name string) *clusterv3.Cluster {
	for _, c := range constantClusters(p) {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// emptyCluster returns a cluster for a gRPC client whose load assignment is empty.
func emptyCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: xdsbuild.ADS(), ServiceName: name},
	}
}
