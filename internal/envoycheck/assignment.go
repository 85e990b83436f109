// SPDX-License-Identifier: Apache-2.0

package envoycheck

import (
	"fmt"
	"math"
	"net/netip"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// maxUnixPath is the maximum length of the path of a unix socket.
const maxUnixPath = 107

// assignment checks a load assignment: of EDS, or, if names is set, of a DNS cluster, whose
// addresses are host names.
func (r *report) assignment(a *endpointv3.ClusterLoadAssignment, names bool) {
	if a.GetClusterName() == "" {
		r.fail("no cluster name")
	}
	priorities := make(map[uint32]uint64)
	localities := make(map[string]bool)
	addresses := make(map[string]bool)
	for _, l := range a.GetEndpoints() {
		key := fmt.Sprintf("priority %d, locality %s/%s/%s", l.GetPriority(),
			l.GetLocality().GetRegion(), l.GetLocality().GetZone(), l.GetLocality().GetSubZone())
		if localities[key] {
			r.fail("%s twice", key)
		}
		localities[key] = true
		r.locality(key, l)
		priorities[l.GetPriority()] += uint64(l.GetLoadBalancingWeight().GetValue())
		for _, e := range l.GetLbEndpoints() {
			for _, address := range addressesOf(e) {
				if text := r.address(address, names); addresses[r.scope(key)+text] {
					r.fail("%s: %s twice", key, text)
				} else {
					addresses[r.scope(key)+text] = true
				}
			}
		}
	}
	for p := range uint32(len(priorities)) {
		if _, ok := priorities[p]; !ok {
			r.fail("%d priorities, but not %d", len(priorities), p)
		}
	}
	for p, sum := range priorities {
		if sum > math.MaxUint32 {
			r.fail("the weights of priority %d exceed 32 bits", p)
		}
	}
}

// scope returns the part of an assignment that must not contain an address twice: the whole
// assignment for gRPC clients, and one locality for Envoys, which balance over duplicates.
func (r *report) scope(locality string) string {
	if r.grpc {
		return ""
	}
	return locality
}

func (r *report) locality(key string, l *endpointv3.LocalityLbEndpoints) {
	if l.Locality == nil {
		r.fail("%s is nil", key)
	}
	if l.GetLoadBalancingWeight().GetValue() == 0 {
		r.fail("%s without weight", key)
	}
	sum := uint64(0)
	for _, e := range l.GetLbEndpoints() {
		sum += uint64(max(1, e.GetLoadBalancingWeight().GetValue()))
		if e.LoadBalancingWeight != nil && e.GetLoadBalancingWeight().GetValue() == 0 {
			r.fail("%s: an endpoint of weight 0", key)
		}
	}
	if sum > math.MaxUint32 {
		r.fail("%s: the weights of the endpoints exceed 32 bits", key)
	}
}

func addressesOf(e *endpointv3.LbEndpoint) []*core.Address {
	out := []*core.Address{e.GetEndpoint().GetAddress()}
	for _, more := range e.GetEndpoint().GetAdditionalAddresses() {
		out = append(out, more.GetAddress())
	}
	return out
}

// address checks an address and returns it as text.
func (r *report) address(a *core.Address, names bool) string {
	if path := a.GetPipe().GetPath(); path != "" {
		if r.grpc || names {
			r.fail("a unix socket, %s", path)
		}
		if len(path) > maxUnixPath {
			r.fail("a unix socket of %d bytes", len(path))
		}
		return path
	}
	host, port := a.GetSocketAddress().GetAddress(), a.GetSocketAddress().GetPortValue()
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		host = addr.Unmap().String()
	case !names:
		r.fail("%q is not an IP address", host)
	case host == "" || strings.ContainsAny(host, " /:*"):
		r.fail("%q is not a host name", host)
	}
	if port == 0 || port > math.MaxUint16 {
		r.fail("%s: port %d", host, port)
	}
	return fmt.Sprintf("%s:%d", strings.ToLower(host), port)
}
