// SPDX-License-Identifier: Apache-2.0

package envoy_test

import (
	"fmt"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestPassthroughPorts: where a service without endpoints has another target port,
// connections go there.
func TestPassthroughPorts(t *testing.T) {
	svc := service(registry.Passthrough)
	svc.Attributes.PassthroughTargetPorts = map[uint32]uint32{80: 8080}
	u := envoy.Upstream{Service: svc, Port: svc.Ports[0]}
	check(t, "override", u.Cluster().GetOriginalDstLbConfig().GetUpstreamPortOverride().GetValue(), uint32(8080))
	for target, want := range map[uint32]bool{65535: true, 65536: false} { // Envoy refuses what is no port
		svc.Attributes.PassthroughTargetPorts[80] = target
		check(t, fmt.Sprint("a cluster with port ", target), u.Cluster() != nil, want)
	}
	u.Gateway = true
	check(t, "on a gateway", u.Cluster().GetType(), clusterv3.Cluster_EDS)
}
