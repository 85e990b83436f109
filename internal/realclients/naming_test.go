// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// naming is the moment in which grpc-go gets routes that name a cluster which its
// routes did not name before. A call that is made between its new routes and its new
// balancers fails: ClientConn.updateResolverStateAndUnlock (grpc-go v1.84, clientconn.go)
// stores the routes by applyServiceConfigAndBalancer, and only then hands the clusters
// to the balancers by updateClientConnState, though it gets both at once; until that is
// done pickerGroup.Pick (internal/xds/balancer/clustermanager/picker.go) knows no such
// cluster. No order of responses can help it, as the client asks for a cluster when a
// route names it. Routes that name a cluster before calls need it can:
// TestTrafficShiftsUnderLoad.
type naming struct {
	// failure is the error of such calls, to the letter.
	failure string
	// backends are those that the cluster leads to.
	backends []string
	// begun: a call has failed. With the next answer of one of the backends the moment
	// is over.
	begun bool
}

// names says that the next change makes routes name a cluster of a service, or of a
// subset of it, that they do not name at present. If the client is grpc-go, calls may
// fail in the moment of that, before follow has returned.
func (c *caller) names(service, subset string, backends ...string) {
	if !c.racesNames {
		return
	}
	cluster := envoy.SubsetClusterName(80, subset, registry.Hostname(service))
	c.namings = append(c.namings, naming{
		failure:  fmt.Sprintf("rpc error: code = Unavailable desc = unknown cluster selected for RPC: %q", "cluster:"+cluster),
		backends: backends,
	})
}

// excused reports whether a call has failed in such a moment.
func (c *caller) excused(o outcome) bool {
	c.namings = slices.DeleteFunc(c.namings, func(n naming) bool { return n.begun && slices.Contains(n.backends, o.Backend) })
	for i, n := range c.namings {
		if o.Error == n.failure {
			c.namings[i].begun = true
			return true
		}
	}
	return false
}
