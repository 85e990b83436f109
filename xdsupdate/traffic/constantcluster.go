// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// constantNames returns the names of the clusters that a proxy has independently of services.
func constantNames(p *proxy) []string {
	switch p.Role {
	case objects.SidecarProxy:
		return []string{xdsbuild.BlackHole, xdsbuild.Passthrough}
	case objects.Router:
		return []string{xdsbuild.BlackHole}
	default:
		return nil
	}
}

func constantCluster(p *proxy, name string) *clusterv3.Cluster {
	switch {
	case name == xdsbuild.BlackHole && p.Role != objects.GRPCClient:
		return xdsbuild.BlackHoleCluster()
	case name == xdsbuild.Passthrough && p.Role == objects.SidecarProxy:
		return xdsbuild.PassthroughCluster()
	default:
		return nil
	}
}
