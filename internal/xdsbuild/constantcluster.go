// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/registry"
)

// The names of the clusters that belong to no service.
const (
	// BlackHole is the cluster of traffic that must not leave a proxy.
	BlackHole = "BlackHoleCluster"
	// Passthrough is the cluster of traffic that goes to its original destination.
	Passthrough = "PassthroughCluster"
)

// BlackHoleCluster returns a cluster without endpoints.
func BlackHoleCluster() *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: BlackHole, ClusterDiscoveryType: discoveryType(clusterv3.Cluster_STATIC),
		ConnectTimeout: durationpb.New(connectTimeout),
	}
}

// PassthroughCluster returns a cluster that connects to the original destination of a connection
// and speaks the protocol of the downstream client.
func PassthroughCluster() *clusterv3.Cluster {
	u := Upstream{
		Service: &registry.Service{Resolution: registry.Passthrough, MeshExternal: true},
		Port:    &registry.Port{Protocol: registry.ProtocolUnsupported}, EncodedMetadata: true,
	}
	c := u.base()
	u.setPool(c)
	c.Name, c.Metadata = Passthrough, nil
	return c
}
