// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

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
