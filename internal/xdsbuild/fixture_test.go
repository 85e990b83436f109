// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"fmt"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
)

func check(tb testing.TB, what string, got, want any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func service(r registry.Resolution) *registry.Service {
	return &registry.Service{
		Hostname: "a.com", Resolution: r, DefaultAddress: "10.1.1.1",
		Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
	}
}

func endpoint(address string, change ...func(*registry.Endpoint)) *registry.Endpoint {
	e := &registry.Endpoint{
		Addresses: []string{address}, EndpointPort: 8080, ServicePortName: "http",
		HealthStatus: registry.Healthy, Shared: &registry.EndpointAttributes{},
	}
	for _, c := range change {
		c(e)
	}
	return e
}

func locality(l string) func(*registry.Endpoint) {
	return func(e *registry.Endpoint) { e.Shared.Locality = l }
}

func weight(w uint32) func(*registry.Endpoint) {
	return func(e *registry.Endpoint) { e.Shared.LbWeight = w }
}

func health(h registry.HealthStatus) func(*registry.Endpoint) {
	return func(e *registry.Endpoint) { e.HealthStatus = h }
}

func port(p uint32) func(*registry.Endpoint) {
	return func(e *registry.Endpoint) { e.EndpointPort = p }
}

// text is a load assignment in short: locality=weight[address/weight/health …].
func text(a *endpointv3.ClusterLoadAssignment) []string {
	out := []string{}
	for _, l := range a.GetEndpoints() {
		s := fmt.Sprintf("%s/%s/%s@%d=%d", l.GetLocality().GetRegion(), l.GetLocality().GetZone(), l.GetLocality().GetSubZone(),
			l.GetPriority(), l.GetLoadBalancingWeight().GetValue())
		for _, lb := range l.GetLbEndpoints() {
			address := lb.GetEndpoint().GetAddress()
			s += fmt.Sprintf(" %s%s:%d", address.GetPipe().GetPath(), address.GetSocketAddress().GetAddress(), address.GetSocketAddress().GetPortValue())
			for _, more := range lb.GetEndpoint().GetAdditionalAddresses() {
				s += "+" + more.GetAddress().GetSocketAddress().GetAddress()
			}
			if lb.LoadBalancingWeight != nil {
				s += fmt.Sprintf("*%d", lb.GetLoadBalancingWeight().GetValue())
			}
			s += "/" + lb.GetHealthStatus().String()
		}
		out = append(out, s)
	}
	return out
}

// lbEndpoints returns the endpoints of an assignment.
func lbEndpoints(a *endpointv3.ClusterLoadAssignment) []*endpointv3.LbEndpoint {
	var out []*endpointv3.LbEndpoint
	for _, l := range a.GetEndpoints() {
		out = append(out, l.GetLbEndpoints()...)
	}
	return out
}
