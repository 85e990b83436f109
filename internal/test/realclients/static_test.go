// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"strings"
	"sync"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// staticPlane is a server of go-control-plane with resources made by a test. It is not our server,
// because the clients' reading of our resources does not depend on it.
type staticPlane struct {
	address string
	caches  map[string]*cache.LinearCache

	mu      sync.Mutex
	refused []string
}

func startStatic(t *testing.T) *staticPlane {
	t.Helper()
	p := &staticPlane{caches: make(map[string]*cache.LinearCache)}
	mux := &cache.MuxCache{
		Classify:      func(r *cache.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cache.DeltaRequest) string { return r.GetTypeUrl() },
		Caches:        make(map[string]cache.Cache),
	}
	for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType, envoy.ClusterType, envoy.LoadAssignmentType} {
		p.caches[typeURL] = cache.NewLinearCache(typeURL)
		mux.Caches[typeURL] = p.caches[typeURL]
	}
	listener := testserver.Listen(t, "127.0.0.1:0")
	p.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	server := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(server, serverv3.NewServer(ctx, mux, serverv3.CallbackFuncs{StreamRequestFunc: p.note}))
	testserver.Serve(t, listener, server)
	return p
}

func (p *staticPlane) note(_ int64, r *discovery.DiscoveryRequest) error {
	if e := r.GetErrorDetail(); e != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.refused = append(p.refused, r.GetTypeUrl()+": "+e.GetMessage())
	}
	return nil
}

// refusals returns the NACKs of clients.
func (p *staticPlane) refusals() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.refused, "\n")
}

func (p *staticPlane) add(t *testing.T, typeURL, name string, resource types.Resource) {
	t.Helper()
	if err := resource.(interface{ ValidateAll() error }).ValidateAll(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := p.caches[typeURL].UpdateResource(name, resource); err != nil {
		t.Fatal(err)
	}
}

// cluster adds a cluster with its endpoints.
func (p *staticPlane) cluster(t *testing.T, name string, ports ...uint32) {
	t.Helper()
	p.add(t, envoy.ClusterType, name, &cluster.Cluster{
		Name: name, ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		EdsClusterConfig: &cluster.Cluster_EdsClusterConfig{EdsConfig: xdsbuild.ADS()},
	})
	out := &endpoint.ClusterLoadAssignment{ClusterName: name}
	for _, port := range ports {
		out.Endpoints = append(out.Endpoints, &endpoint.LocalityLbEndpoints{
			Locality: &core.Locality{Region: "r"}, LoadBalancingWeight: wrapperspb.UInt32(1),
			LbEndpoints: []*endpoint.LbEndpoint{{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{
				Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
					Address: "127.0.0.1", PortSpecifier: &core.SocketAddress_PortValue{PortValue: port},
				}}},
			}}}},
		})
	}
	p.add(t, envoy.LoadAssignmentType, name, out)
}

// target adds a target with routes, and returns it.
func (p *staticPlane) target(t *testing.T, host string, routes []*route.Route) string {
	t.Helper()
	p.add(t, envoy.RouteType, host, &route.RouteConfiguration{
		Name: host, VirtualHosts: []*route.VirtualHost{{Name: host, Domains: []string{host}, Routes: routes}},
	})
	p.add(t, envoy.ListenerType, host, xdsbuild.GRPCListener(host, host, "0.0.0.0", 80))
	return "xds:///" + host
}

// bootstrap is a client's.
func (p *staticPlane) bootstrap(t *testing.T) []byte {
	t.Helper()
	return bootstrap(t, p.address)
}
