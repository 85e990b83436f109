// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// endpointsOf returns the endpoints of a cluster, by priority.
func endpointsOf(u *envoy.Upstream) []ExplainedEndpoint {
	var from *endpointv3.ClusterLoadAssignment
	if u.EDS() {
		from = u.LoadAssignment()
	} else {
		from = u.Cluster().GetLoadAssignment()
	}
	var out []ExplainedEndpoint
	for _, l := range from.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			out = append(out, ExplainedEndpoint{
				Address: addressText(e.GetEndpoint().GetAddress()), Locality: localityText(l.GetLocality()),
				Priority: l.GetPriority(), Weight: max(1, e.GetLoadBalancingWeight().GetValue()),
			})
		}
	}
	slices.SortStableFunc(out, func(a, b ExplainedEndpoint) int { return cmp.Compare(a.Priority, b.Priority) })
	return out
}

func addressText(a *core.Address) string {
	if pipe := a.GetPipe(); pipe != nil {
		return pipe.GetPath()
	}
	s := a.GetSocketAddress()
	return net.JoinHostPort(s.GetAddress(), strconv.FormatUint(uint64(s.GetPortValue()), 10))
}

func localityText(l *core.Locality) string {
	return strings.TrimRight(l.GetRegion()+"/"+l.GetZone()+"/"+l.GetSubZone(), "/")
}
