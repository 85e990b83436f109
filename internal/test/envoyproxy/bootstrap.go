// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// serverCluster is the name of the static cluster of the ADS server.
const serverCluster = "xds"

// Bootstrap returns the bootstrap of an Envoy: its node, its server, and the resources in the
// options. The administration page is on a free port of the loopback interface.
func Bootstrap(o Options) (*bootstrap.Bootstrap, error) {
	node, err := o.Node.message()
	if err != nil {
		return nil, err
	}
	b := &bootstrap.Bootstrap{
		Node:            node,
		Admin:           &bootstrap.Admin{Address: Address("127.0.0.1", 0)},
		StaticResources: &bootstrap.Bootstrap_StaticResources{Listeners: o.Listeners, Clusters: slices.Clone(o.Clusters), Secrets: o.Secrets},
	}
	if len(o.Runtime) > 0 {
		values, err := structpb.NewStruct(o.Runtime)
		if err != nil {
			return nil, err
		}
		b.LayeredRuntime = &bootstrap.LayeredRuntime{Layers: []*bootstrap.RuntimeLayer{{
			Name: "static", LayerSpecifier: &bootstrap.RuntimeLayer_StaticLayer{StaticLayer: values},
		}}}
	}
	if o.Resolver != nil {
		config, err := anypb.New(o.Resolver)
		if err != nil {
			return nil, err
		}
		b.TypedDnsResolverConfig = &core.TypedExtensionConfig{Name: "envoy.network.dns_resolver.cares", TypedConfig: config}
	}
	if o.Server != "" {
		if err := o.dynamic(b); err != nil {
			return nil, err
		}
	}
	if o.ListenersFile != "" {
		if b.DynamicResources == nil {
			b.DynamicResources = &bootstrap.Bootstrap_DynamicResources{}
		}
		b.DynamicResources.LdsConfig = fileSource(o.ListenersFile)
	}
	return b, nil
}

// dynamic makes an Envoy one of an ADS server.
func (o Options) dynamic(b *bootstrap.Bootstrap) error {
	cluster, err := HTTP2Cluster(serverCluster, o.Server)
	if err != nil {
		return err
	}
	b.StaticResources.Clusters = append(b.StaticResources.Clusters, cluster)
	api := core.ApiConfigSource_GRPC
	if o.Delta {
		api = core.ApiConfigSource_DELTA_GRPC
	}
	b.DynamicResources = &bootstrap.Bootstrap_DynamicResources{
		CdsConfig: ADS(),
		AdsConfig: &core.ApiConfigSource{
			ApiType: api, TransportApiVersion: core.ApiVersion_V3,
			GrpcServices: []*core.GrpcService{{
				TargetSpecifier: &core.GrpcService_EnvoyGrpc_{EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: serverCluster}},
				InitialMetadata: []*core.HeaderValue{{Key: nodeHeader, Value: o.Node.ID()}},
			}},
		},
	}
	if !o.OwnListeners {
		b.DynamicResources.LdsConfig = ADS()
	}
	return nil
}

// nodeHeader has the node id, because interceptors do not see the content of a request.
const nodeHeader = "x-node-id"

// NodeOf returns the node id of the Envoy whose stream has a context; "" for a client
// that this package did not start.
func NodeOf(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, nodeHeader); len(values) > 0 {
		return values[0]
	}
	return ""
}

// ADS returns the source of resources that come from the ADS server.
func ADS() *core.ConfigSource {
	return &core.ConfigSource{
		ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
		ResourceApiVersion:    core.ApiVersion_V3,
	}
}

// Address returns an address of the network.
func Address(ip string, port uint32) *core.Address {
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: ip, PortSpecifier: &core.SocketAddress_PortValue{PortValue: port},
	}}}
}

// HTTP2Cluster returns a static cluster of one server that speaks HTTP/2 without TLS.
func HTTP2Cluster(name, address string) (*clusterv3.Cluster, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	options, err := anypb.New(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &core.Http2ProtocolOptions{}},
		}},
	})
	if err != nil {
		return nil, err
	}
	endpoint := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
		Endpoint: &endpointv3.Endpoint{Address: Address(host, uint32(port))},
	}}
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(time.Second), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		LoadAssignment:                &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{endpoint}}}},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
	}, nil
}
