// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
)

// constantNames returns the names of the clusters that a proxy has independently of services.
func constantNames(p *proxy) []string {
	switch p.role {
	case sidecarProxy:
		return []string{xdsbuild.BlackHole, xdsbuild.Passthrough}
	case router:
		return []string{xdsbuild.BlackHole}
	default:
		return nil
	}
}

func constantCluster(p *proxy, name string) *clusterv3.Cluster {
	switch {
	case name == xdsbuild.BlackHole && p.role != grpcClient:
		return xdsbuild.BlackHoleCluster()
	case name == xdsbuild.Passthrough && p.role == sidecarProxy:
		return xdsbuild.PassthroughCluster()
	default:
		return nil
	}
}
