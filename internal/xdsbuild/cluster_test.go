// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"fmt"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestPassthroughPorts: where a service without endpoints has another target port,
// connections go there.
func TestPassthroughPorts(t *testing.T) {
	svc := service(registry.Passthrough)
	svc.Attributes.PassthroughTargetPorts = map[uint32]uint32{80: 8080}
	u := xdsbuild.Upstream{Service: svc, Port: svc.Ports[0]}
	check(t, "override", u.Cluster().GetOriginalDstLbConfig().GetUpstreamPortOverride().GetValue(), uint32(8080))
	svc.Attributes.PassthroughTargetPorts[80] = 80 // said although it is the port itself
	check(t, "override with the same port", u.Cluster().GetOriginalDstLbConfig().GetUpstreamPortOverride().GetValue(), uint32(80))
	for target, want := range map[uint32]bool{65535: true, 65536: false} { // Envoy rejects invalid ports
		svc.Attributes.PassthroughTargetPorts[80] = target
		check(t, fmt.Sprint("a cluster with port ", target), u.Cluster() != nil, want)
	}
	u.Gateway = true
	check(t, "on a gateway", u.Cluster().GetType(), clusterv3.Cluster_EDS)
}

func TestCluster(t *testing.T) {
	names := []*registry.Endpoint{
		endpoint("b.example.com"), endpoint("a.example.com", health(registry.Draining)), endpoint("B.example.com"),
	}
	tests := []struct {
		resolution registry.Resolution
		client     envoy.Client
		endpoints  []*registry.Endpoint
		kind       string // "" for no cluster
		want       []string
	}{
		{registry.ClientSideLB, envoy.ForEnvoy, nil, "EDS", []string{}},
		{registry.ClientSideLB, envoy.ForGRPC, nil, "EDS", []string{}},
		{registry.DNSLB, envoy.ForEnvoy, names, "envoy.clusters.dns", []string{"//@0=2 B.example.com:8080/HEALTHY a.example.com:8080/DRAINING"}},
		{registry.DNSLB, envoy.ForGRPC, names, "LOGICAL_DNS", []string{"//@0=1 B.example.com:8080/HEALTHY"}},
		{registry.DNSRoundRobinLB, envoy.ForEnvoy, names, "envoy.clusters.dns, one endpoint", []string{"//@0=1 B.example.com:8080/HEALTHY"}},
		{registry.DNSLB, envoy.ForEnvoy, nil, "", nil},
		{registry.Passthrough, envoy.ForEnvoy, nil, "ORIGINAL_DST", []string{}},
		{registry.Passthrough, envoy.ForGRPC, nil, "EDS", []string{}},
		{registry.DynamicDNS, envoy.ForEnvoy, nil, "envoy.clusters.dynamic_forward_proxy", []string{}},
		{registry.DynamicDNS, envoy.ForGRPC, nil, "", nil},
		{registry.Alias, envoy.ForEnvoy, nil, "", nil},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%v for %v", test.resolution, test.client), func(t *testing.T) {
			svc := service(test.resolution)
			c := xdsbuild.Cluster(svc, svc.Ports[0], test.endpoints, nil, test.client)
			if c == nil {
				check(t, "cluster", "", test.kind)
				return
			}
			kind := c.GetClusterType().GetName()
			switch {
			case kind == "":
				kind = c.GetType().String()
			case kind == "envoy.clusters.dns" && dnsOf(t, c).GetAllAddressesInSingleEndpoint():
				kind += ", one endpoint"
			}
			check(t, "type", kind, test.kind)
			check(t, "endpoints", text(c.GetLoadAssignment()), test.want)
			check(t, "name", c.GetName(), "outbound|80||a.com")
			if own := c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED; own != (kind == "ORIGINAL_DST" || kind == "envoy.clusters.dynamic_forward_proxy") {
				t.Errorf("lb_policy = %v", c.GetLbPolicy())
			}
		})
	}
}

// TestByAssignment: gRPC clients choose an endpoint of a headless service themselves. A
// ServiceEntry without resolution has no endpoints for them.
func TestByAssignment(t *testing.T) {
	for _, tt := range []struct {
		resolution registry.Resolution
		provider   registry.ProviderID
		client     envoy.Client
		want       bool
	}{
		{registry.ClientSideLB, registry.External, envoy.ForEnvoy, true},
		{registry.ClientSideLB, registry.Kubernetes, envoy.ForGRPC, true},
		{registry.Passthrough, registry.Kubernetes, envoy.ForGRPC, true},
		{registry.Passthrough, registry.Kubernetes, envoy.ForEnvoy, false},
		{registry.Passthrough, registry.External, envoy.ForGRPC, false},
		{registry.DNSLB, registry.Kubernetes, envoy.ForGRPC, false},
	} {
		svc := service(tt.resolution)
		svc.Attributes.Provider = tt.provider
		check(t, fmt.Sprintf("%v of %s for %d", tt.resolution, tt.provider, tt.client), xdsbuild.ByAssignment(svc, tt.client), tt.want)
	}
}

// TestProtocolOptions: Envoy rejects a dynamic forward proxy whose protocol options do not verify
// the host of each request.
func TestProtocolOptions(t *testing.T) {
	for _, resolution := range []registry.Resolution{registry.ClientSideLB, registry.Passthrough, registry.DynamicDNS} {
		for _, protocol := range []registry.Protocol{registry.ProtocolHTTP, registry.ProtocolHTTP2, registry.ProtocolGRPC} {
			svc := service(resolution)
			svc.Ports[0].Protocol = protocol
			packed := xdsbuild.Cluster(svc, svc.Ports[0], nil, nil, envoy.ForEnvoy).GetTypedExtensionProtocolOptions()[httpOptions]
			var options http.HttpProtocolOptions
			if packed != nil {
				if err := packed.UnmarshalTo(&options); err != nil {
					t.Fatal(err)
				}
			}
			http2 := protocol != registry.ProtocolHTTP
			what := fmt.Sprintf("%v %s: ", resolution, protocol)
			check(t, what+"HTTP/2", options.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil, http2)
			verify := http2 && resolution == registry.DynamicDNS
			check(t, what+"auto_sni", options.GetUpstreamHttpProtocolOptions().GetAutoSni(), verify)
			check(t, what+"auto_san_validation", options.GetUpstreamHttpProtocolOptions().GetAutoSanValidation(), verify)
		}
	}
}

func TestClusterMetadata(t *testing.T) {
	svc := service(registry.ClientSideLB)
	svc.ServiceAccounts = []string{"spiffe://b", "spiffe://a"}
	svc.Attributes.Namespace = "ns"
	var got []string
	c := xdsbuild.Cluster(svc, svc.Ports[0], nil, []string{"spiffe://c", "spiffe://a"}, envoy.ForEnvoy)
	for _, v := range c.GetMetadata().GetFilterMetadata()["pilotkit"].GetFields()["subject_alt_names"].GetListValue().GetValues() {
		got = append(got, v.GetStringValue())
	}
	check(t, "identities", got, []string{"spiffe://a", "spiffe://b", "spiffe://c"})
	istio := c.GetMetadata().GetFilterMetadata()["istio"].AsMap()
	check(t, "istio", istio, map[string]any{
		"default_original_port": 80.0,
		"services":              []any{map[string]any{"host": "a.com", "name": "", "namespace": "ns"}},
	})
}
