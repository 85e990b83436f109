// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
)

// emptyCluster returns a cluster for a gRPC client whose load assignment is empty.
func emptyCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: xdsbuild.ADS(), ServiceName: name},
	}
}
