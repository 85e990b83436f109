// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// constantNames returns the names of the clusters that a proxy has independently of services.
func constantNames(p *proxy) []string {
	switch p.role {
	case sidecarProxy:
		return []string{envoy.BlackHole, envoy.Passthrough}
	case router:
		return []string{envoy.BlackHole}
	default:
		return nil
	}
}

func constantCluster(p *proxy, name string) *clusterv3.Cluster {
	switch {
	case name == envoy.BlackHole && p.role != grpcClient:
		return envoy.BlackHoleCluster()
	case name == envoy.Passthrough && p.role == sidecarProxy:
		return envoy.PassthroughCluster()
	default:
		return nil
	}
}
