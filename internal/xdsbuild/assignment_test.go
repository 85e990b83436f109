// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

func TestLoadAssignment(t *testing.T) {
	flagged := func(e *registry.Endpoint) { e.Shared.SendUnhealthyEndpoints = true }
	tests := []struct {
		name      string
		client    envoy.Client
		endpoints []*registry.Endpoint
		want      []string
	}{
		{name: "none", want: []string{}},
		{
			name: "localities and weights",
			endpoints: []*registry.Endpoint{
				endpoint("10.0.0.3", locality("r/z"), weight(5)), endpoint("10.0.0.2", locality("r/z")),
				endpoint("10.0.0.1"), endpoint("10.0.0.4", locality("a/b/c/d")),
			},
			want: []string{
				"//@0=1 10.0.0.1:8080/HEALTHY", "a/b/c@0=1 10.0.0.4:8080/HEALTHY",
				"r/z/@0=6 10.0.0.2:8080/HEALTHY 10.0.0.3:8080*5/HEALTHY",
			},
		},
		{
			name: "ports",
			endpoints: []*registry.Endpoint{
				endpoint("10.0.0.1", func(e *registry.Endpoint) { e.ServicePortName = "other" }),
				endpoint("10.0.0.2", func(e *registry.Endpoint) { e.ServicePort, e.ServicePortName = 80, "other" }),
				endpoint("10.0.0.3", func(e *registry.Endpoint) { e.ServicePort = 81 }),
				endpoint("10.0.0.4", port(0)), endpoint("10.0.0.5", port(70000)),
			},
			want: []string{"//@0=1 10.0.0.2:8080/HEALTHY"},
		},
		{
			name: "health",
			endpoints: []*registry.Endpoint{
				endpoint("10.0.0.1", health(registry.HealthUnset)), endpoint("10.0.0.2", health(registry.UnHealthy)),
				endpoint("10.0.0.3", health(registry.UnHealthy), flagged), endpoint("10.0.0.4", health(registry.Draining)),
				endpoint("10.0.0.5", health(registry.Terminating)),
			},
			want: []string{"//@0=4 10.0.0.1:8080/UNKNOWN 10.0.0.3:8080/UNHEALTHY 10.0.0.4:8080/DRAINING 10.0.0.5:8080/DRAINING"},
		},
		{
			name: "the same address twice: the healthiest, wherever it is",
			endpoints: []*registry.Endpoint{
				endpoint("10.0.0.1", health(registry.Draining), locality("a")), endpoint("10.0.0.1", locality("z")),
				endpoint("::ffff:10.0.0.1", locality("b"), health(registry.Draining)), endpoint("10.0.0.1", port(81)),
			},
			want: []string{"//@0=1 10.0.0.1:81/HEALTHY", "z//@0=1 10.0.0.1:8080/HEALTHY"},
		},
		{
			name: "addresses that cannot be used",
			endpoints: []*registry.Endpoint{
				endpoint("host.name"), endpoint(""), endpoint("fe80::1%eth0"), endpoint("10.0.0.300"), {ServicePortName: "http", EndpointPort: 1},
			},
			want: []string{},
		},
		{
			name: "dual stack",
			endpoints: []*registry.Endpoint{
				endpoint("10.0.0.1", func(e *registry.Endpoint) { e.Addresses = []string{"10.0.0.1", "2001:db8::1"} }),
				endpoint("2001:db8::1"),
			},
			want: []string{"//@0=1 10.0.0.1:8080+2001:db8::1/HEALTHY"},
		},
		{
			name:      "unix sockets",
			endpoints: []*registry.Endpoint{endpoint("/run/a", port(0)), endpoint("@abstract", port(0)), endpoint("/run/a", port(0))},
			want:      []string{"//@0=2 /run/a:0/HEALTHY @abstract:0/HEALTHY"},
		},
		{
			name: "unix sockets that Envoy would refuse the assignment for",
			endpoints: []*registry.Endpoint{
				endpoint("/"+strings.Repeat("a", 106), port(0)), endpoint("/"+strings.Repeat("b", 107), port(0)),
				endpoint("@"+strings.Repeat("c", 107), port(0)), endpoint("/a\x00b", port(0)), endpoint("/\xff", port(0)),
			},
			want: []string{"//@0=1 /" + strings.Repeat("a", 106) + ":0/HEALTHY"},
		},
		{
			name: "unix sockets for gRPC", client: envoy.ForGRPC,
			endpoints: []*registry.Endpoint{endpoint("/run/a", port(0)), endpoint("10.0.0.1")},
			want:      []string{"//@0=1 10.0.0.1:8080/HEALTHY"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			svc := service(registry.ClientSideLB)
			check(t, "assignment", text(xdsbuild.LoadAssignment(svc, svc.Ports[0], test.endpoints, test.client)), test.want)
		})
	}
}

// TestCheckEndpoint: exactly the endpoints that are omitted from all resources are reported.
func TestCheckEndpoint(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1": "", "a.com": "", "": "", "/run/s": "", "@s": "", "/" + strings.Repeat("a", 106): "",
		"/" + strings.Repeat("a", 107): "unix socket \"/" + strings.Repeat("a", 31) + "\"… is 108 bytes long, at most 107 are possible",
		"@a\x00b":                      "unix socket \"@a\\x00b\": not UTF-8, or with a NUL",
		"/\xff":                        "unix socket \"/\\xff\": not UTF-8, or with a NUL",
	} {
		got := ""
		if err := xdsbuild.CheckEndpoint(endpoint(address)); err != nil {
			got = err.Error()
		}
		check(t, address, got, want)
	}
}

func TestEndpointMetadata(t *testing.T) {
	e := endpoint("10.0.0.1", func(e *registry.Endpoint) {
		e.WorkloadName = "w"
		e.Shared = &registry.EndpointAttributes{TLSMode: "istio", Namespace: "n", ClusterID: "c", Labels: registry.Labels{
			"service.istio.io/canonical-name": "cn", "service.istio.io/canonical-revision": "v1",
		}}
	})
	svc := service(registry.ClientSideLB)
	sent := func() *endpointv3.LbEndpoint {
		return lbEndpoints(xdsbuild.LoadAssignment(svc, svc.Ports[0], []*registry.Endpoint{e}, envoy.ForEnvoy))[0]
	}
	got := sent().GetMetadata().GetFilterMetadata()
	check(t, "tlsMode", got["envoy.transport_socket_match"].GetFields()["tlsMode"].GetStringValue(), "istio")
	check(t, "workload", got["istio"].GetFields()["workload"].GetStringValue(), "w;n;cn;v1;c")
	e.Shared.TLSMode, e.WorkloadName = "disabled", ""
	check(t, "plain", sent().GetMetadata() == nil, true)
}
