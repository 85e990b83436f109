// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	dfpcluster "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	dfp "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// connectTimeout is Istio 1.30's default.
const connectTimeout = 10 * time.Second

// Cluster returns the cluster of a port of a service, or nil if the table in the package comment
// has none. Endpoints are the endpoints of the service; they become part of the cluster for DNS
// resolutions and are ignored otherwise. Identities are the identities of the endpoints.
//
// The cluster's metadata has Istio's "istio" entry (the service and the port), and "pilotkit" with
// "subject_alt_names": the sorted identities of the endpoints and of the service itself, for hosts
// that add a TLS context. The cluster has no TLS context by default, because the host owns the
// certificates.
func Cluster(
	svc *registry.Service, port *registry.Port, endpoints []*registry.Endpoint, identities []string, client envoy.Client,
) *clusterv3.Cluster {
	u := Upstream{Service: svc, Port: port, Endpoints: endpoints, Identities: identities, Client: client}
	return u.PlainCluster()
}

// PlainCluster returns the result of the function Cluster for the upstream, which has no policy.
func (u *Upstream) PlainCluster() *clusterv3.Cluster {
	if !usable(u.Service.Hostname, u.Port) {
		return nil
	}
	return u.base()
}

// clusterParts are the messages that most clusters consist of, in one allocation.
type clusterParts struct {
	cluster   clusterv3.Cluster
	timeout   durationpb.Duration
	balancing clusterv3.Cluster_CommonLbConfig
	threshold typev3.Percent
	kind      clusterv3.Cluster_Type
	eds       clusterv3.Cluster_EdsClusterConfig
	source    core.ConfigSource
	ads       core.ConfigSource_Ads
	stream    core.AggregatedConfigSource
}

// base returns the cluster without its policy, or nil if there is no cluster.
func (u *Upstream) base() *clusterv3.Cluster {
	p := &clusterParts{}
	c := &p.cluster
	c.Name, c.LbPolicy, c.Metadata = u.name(), clusterv3.Cluster_ROUND_ROBIN, u.metadata()
	p.timeout.Seconds = int64(connectTimeout / time.Second)
	c.ConnectTimeout = &p.timeout
	// Panic mode would send requests to endpoints that are known to be unhealthy.
	p.balancing.HealthyPanicThreshold = &p.threshold
	c.CommonLbConfig = &p.balancing
	if !u.discover(p) {
		return nil
	}
	if u.Client != envoy.ForGRPC { // gRPC clients know only HTTP/2
		u.setProtocol(c)
	}
	return c
}

// discover sets how the cluster finds its endpoints. It returns false if there is no such cluster.
func (u *Upstream) discover(p *clusterParts) bool {
	c := &p.cluster
	switch u.resolution() {
	case registry.ClientSideLB:
		p.discoverByADS()
		return true
	case registry.DNSLB, registry.DNSRoundRobinLB:
		return u.discoverByDNS(c)
	case registry.Passthrough:
		return u.Client != envoy.ForGRPC && u.passThrough(c) // gRPC has no such cluster type
	case registry.DynamicDNS:
		return u.Client != envoy.ForGRPC && discoverPerRequest(c)
	default:
		return false
	}
}

func (p *clusterParts) discoverByADS() {
	p.ads.Ads = &p.stream
	p.source.ResourceApiVersion, p.source.ConfigSourceSpecifier = core.ApiVersion_V3, &p.ads
	p.eds.EdsConfig, p.eds.ServiceName = &p.source, p.cluster.GetName()
	p.kind.Type = clusterv3.Cluster_EDS
	p.cluster.ClusterDiscoveryType, p.cluster.EdsClusterConfig = &p.kind, &p.eds
}

// passThrough makes the cluster connect to the original destination of a connection, possibly at
// another port.
func (u *Upstream) passThrough(c *clusterv3.Cluster) bool {
	c.ClusterDiscoveryType = discoveryType(clusterv3.Cluster_ORIGINAL_DST)
	c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	target := u.Service.Attributes.PassthroughTargetPorts[u.Port.Number]
	if target != 0 {
		c.LbConfig = &clusterv3.Cluster_OriginalDstLbConfig_{OriginalDstLbConfig: &clusterv3.Cluster_OriginalDstLbConfig{
			UpstreamPortOverride: wrapperspb.UInt32(target),
		}}
	}
	return target <= maxPort // Envoy rejects other ports
}

// resolution returns how the proxy finds the endpoints. In most cases it is the resolution of the
// service.
func (u *Upstream) resolution() registry.Resolution {
	passthrough := u.Policy.GetLoadBalancer().GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH
	switch r := u.Service.Resolution; {
	case u.Gateway && r == registry.Passthrough:
		// The original destination of a connection to a gateway is the gateway itself.
		return registry.ClientSideLB
	case passthrough && u.Client != envoy.ForGRPC && (r == registry.ClientSideLB || r.IsDNS()):
		return registry.Passthrough
	case ByAssignment(u.Service, u.Client):
		return registry.ClientSideLB
	default:
		return r
	}
}

// ByAssignment reports whether clients get the endpoints of a service by load assignments. gRPC
// clients choose an endpoint themselves, so they also get the endpoints of a Passthrough service,
// such as a headless Kubernetes service. An exception is the Passthrough service of a ServiceEntry
// (registry.External), which has no endpoints for them.
func ByAssignment(svc *registry.Service, client envoy.Client) bool {
	return svc.Resolution == registry.ClientSideLB ||
		svc.Resolution == registry.Passthrough && client == envoy.ForGRPC && svc.Attributes.Provider != registry.External
}

func (u *Upstream) discoverByDNS(c *clusterv3.Cluster) bool {
	endpoints := u.choose(true)
	if len(endpoints) == 0 {
		return false
	}
	logical := u.Service.Resolution != registry.DNSLB || u.Client == envoy.ForGRPC
	if logical { // Envoy and gRPC clients accept exactly one endpoint
		endpoints = []*registry.Endpoint{slices.MinFunc(endpoints, func(a, b *registry.Endpoint) int {
			return preference(a) - preference(b)
		})}
	}
	if u.Client == envoy.ForGRPC {
		c.ClusterDiscoveryType = discoveryType(clusterv3.Cluster_LOGICAL_DNS)
	} else {
		c.ClusterDiscoveryType = customType(dnsCluster, u.dns(logical))
	}
	c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: c.GetName(), Endpoints: u.localities(endpoints, true)}
	return len(c.GetLoadAssignment().GetEndpoints()) > 0 // a distribution may leave out all of them
}

// discoverPerRequest makes a cluster that resolves the host of each request itself, so the listener
// needs no filter for it. It connects to the port in the request's host, or to port 80 (443 with
// TLS) if the host has none, because Envoy has no setting for the port of the service.
func discoverPerRequest(c *clusterv3.Cluster) bool {
	c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	c.ClusterDiscoveryType = customType(forwardProxyCluster, &dfpcluster.ClusterConfig{
		ClusterImplementationSpecifier: &dfpcluster.ClusterConfig_DnsCacheConfig{DnsCacheConfig: &dfp.DnsCacheConfig{
			Name: c.GetName(), DnsLookupFamily: clusterv3.Cluster_V4_PREFERRED,
		}},
	})
	return true
}

// ADS returns a config source for the stream that also carries the referencing resource.
func ADS() *core.ConfigSource {
	return &core.ConfigSource{
		ResourceApiVersion:    core.ApiVersion_V3,
		ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
	}
}

// The custom cluster types of Envoy.
const (
	dnsCluster          = "envoy.clusters.dns"
	forwardProxyCluster = "envoy.clusters.dynamic_forward_proxy"
)

func customType(name string, config proto.Message) *clusterv3.Cluster_ClusterType {
	return &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{Name: name, TypedConfig: packed(config)}}
}

func discoveryType(t clusterv3.Cluster_DiscoveryType) *clusterv3.Cluster_Type {
	return &clusterv3.Cluster_Type{Type: t}
}
