// SPDX-License-Identifier: Apache-2.0

package envoy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
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
			check(t, "assignment", text(envoy.LoadAssignment(svc, svc.Ports[0], test.endpoints, test.client)), test.want)
		})
	}
}

// TestCheckEndpoint: what is left out of every resource is reported, and nothing
// else is.
func TestCheckEndpoint(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1": "", "a.com": "", "": "", "/run/s": "", "@s": "", "/" + strings.Repeat("a", 106): "",
		"/" + strings.Repeat("a", 107): "unix socket \"/" + strings.Repeat("a", 31) + "\"… is 108 bytes long, at most 107 are possible",
		"@a\x00b":                      "unix socket \"@a\\x00b\": not UTF-8, or with a NUL",
		"/\xff":                        "unix socket \"/\\xff\": not UTF-8, or with a NUL",
	} {
		got := ""
		if err := envoy.CheckEndpoint(endpoint(address)); err != nil {
			got = err.Error()
		}
		check(t, address, got, want)
	}
}

// TestWeightsKeepTheirProportions when they are scaled down: Envoys compare those
// of endpoints in different localities.
func TestWeightsKeepTheirProportions(t *testing.T) {
	svc := service(registry.ClientSideLB)
	var endpoints []*registry.Endpoint
	for i := range 4 {
		endpoints = append(endpoints, endpoint(fmt.Sprintf("10.0.0.%d", i), weight(1<<31), locality("a")))
	}
	endpoints = append(endpoints, endpoint("10.0.1.1", weight(1<<30), locality("b")))
	check(t, "assignment", text(envoy.LoadAssignment(svc, svc.Ports[0], endpoints, envoy.ForEnvoy)), []string{
		"a//@0=2147483648 10.0.0.0:8080*536870912/HEALTHY 10.0.0.1:8080*536870912/HEALTHY" +
			" 10.0.0.2:8080*536870912/HEALTHY 10.0.0.3:8080*536870912/HEALTHY",
		"b//@0=268435456 10.0.1.1:8080*268435456/HEALTHY",
	})
}

func TestWeightsStayIn32Bits(t *testing.T) {
	svc := service(registry.ClientSideLB)
	var endpoints []*registry.Endpoint
	for i := range 12 {
		endpoints = append(endpoints, endpoint(fmt.Sprintf("10.0.0.%d", i), weight(math.MaxUint32), locality(fmt.Sprint(i%3))))
	}
	endpoints = append(endpoints, endpoint("10.0.0.99", weight(1), locality("0")))
	var total uint64
	for _, l := range envoy.LoadAssignment(svc, svc.Ports[0], endpoints, envoy.ForEnvoy).GetEndpoints() {
		var sum uint64
		for _, lb := range l.GetLbEndpoints() {
			if w := lb.GetLoadBalancingWeight().GetValue(); w == 0 {
				t.Error("weight 0")
			} else {
				sum += uint64(w)
			}
		}
		if sum > math.MaxUint32 || l.GetLoadBalancingWeight().GetValue() == 0 {
			t.Errorf("locality %v: sum %d", l.GetLocality(), sum)
		}
		total += uint64(l.GetLoadBalancingWeight().GetValue())
	}
	if total > math.MaxUint32 || total < math.MaxUint32/4 {
		t.Errorf("sum of localities = %d", total)
	}
}

// lbEndpoints returns the endpoints of an assignment.
func lbEndpoints(a *endpointv3.ClusterLoadAssignment) []*endpointv3.LbEndpoint {
	var out []*endpointv3.LbEndpoint
	for _, l := range a.GetEndpoints() {
		out = append(out, l.GetLbEndpoints()...)
	}
	return out
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
		return lbEndpoints(envoy.LoadAssignment(svc, svc.Ports[0], []*registry.Endpoint{e}, envoy.ForEnvoy))[0]
	}
	got := sent().GetMetadata().GetFilterMetadata()
	check(t, "tlsMode", got["envoy.transport_socket_match"].GetFields()["tlsMode"].GetStringValue(), "istio")
	check(t, "workload", got["istio"].GetFields()["workload"].GetStringValue(), "w;n;cn;v1;c")
	e.Shared.TLSMode, e.WorkloadName = "disabled", ""
	check(t, "plain", sent().GetMetadata() == nil, true)
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
		{registry.DNSLB, envoy.ForEnvoy, names, "STRICT_DNS", []string{"//@0=2 B.example.com:8080/HEALTHY a.example.com:8080/DRAINING"}},
		{registry.DNSLB, envoy.ForGRPC, names, "LOGICAL_DNS", []string{"//@0=1 B.example.com:8080/HEALTHY"}},
		{registry.DNSRoundRobinLB, envoy.ForEnvoy, names, "LOGICAL_DNS", []string{"//@0=1 B.example.com:8080/HEALTHY"}},
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
			c := envoy.Cluster(svc, svc.Ports[0], test.endpoints, nil, test.client)
			if c == nil {
				check(t, "cluster", "", test.kind)
				return
			}
			kind := c.GetClusterType().GetName()
			if kind == "" {
				kind = c.GetType().String()
			}
			check(t, "type", kind, test.kind)
			check(t, "endpoints", text(c.GetLoadAssignment()), test.want)
			check(t, "name", c.GetName(), "outbound|80||a.com")
			if own := c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED; own != (kind == "ORIGINAL_DST" || c.GetClusterType() != nil) {
				t.Errorf("lb_policy = %v", c.GetLbPolicy())
			}
		})
	}
}

// TestProtocolOptions: Envoy refuses a dynamic forward proxy whose protocol options
// do not verify the host of each request.
func TestProtocolOptions(t *testing.T) {
	for _, resolution := range []registry.Resolution{registry.ClientSideLB, registry.Passthrough, registry.DynamicDNS} {
		for _, protocol := range []registry.Protocol{registry.ProtocolHTTP, registry.ProtocolHTTP2, registry.ProtocolGRPC} {
			svc := service(resolution)
			svc.Ports[0].Protocol = protocol
			packed := envoy.Cluster(svc, svc.Ports[0], nil, nil, envoy.ForEnvoy).GetTypedExtensionProtocolOptions()[httpOptions]
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

// TestWeightsOfManySmallOnes: what is scaled down to less than 1 stays 1, and there is
// room for it.
func TestWeightsOfManySmallOnes(t *testing.T) {
	svc := service(registry.ClientSideLB)
	endpoints := []*registry.Endpoint{endpoint("10.0.1.1", weight(math.MaxUint32-100)), endpoint("10.0.1.2", weight(math.MaxUint32-100))}
	for i := range 150 {
		endpoints = append(endpoints, endpoint(fmt.Sprintf("10.0.0.%d", i), weight(1)))
	}
	sum := uint64(0)
	for _, lb := range envoy.LoadAssignment(svc, svc.Ports[0], endpoints, envoy.ForEnvoy).GetEndpoints()[0].GetLbEndpoints() {
		sum += uint64(lb.GetLoadBalancingWeight().GetValue())
	}
	if sum > math.MaxUint32 {
		t.Errorf("sum of weights = %d, over 32 bits", sum)
	}
}

// TestHostNamesOfDNSClusters: Envoy resolves the first one of an endpoint only.
func TestHostNamesOfDNSClusters(t *testing.T) {
	svc := service(registry.DNSLB)
	e := endpoint("a.example.com")
	e.Addresses = append(e.Addresses, "b.example.com")
	c := envoy.Cluster(svc, svc.Ports[0], []*registry.Endpoint{e}, nil, envoy.ForEnvoy)
	check(t, "endpoints", text(c.GetLoadAssignment()), []string{"//@0=1 a.example.com:8080/HEALTHY"})
}

// TestByAssignment: gRPC clients choose an endpoint of a headless service themselves,
// which a ServiceEntry without resolution has none of.
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
		check(t, fmt.Sprintf("%v of %s for %d", tt.resolution, tt.provider, tt.client), envoy.ByAssignment(svc, tt.client), tt.want)
	}
}

// TestNoUnixSocketInDNSClusters: a STATIC and a DNS entry may share a host, whose
// cluster is then of one kind but gets the endpoints of both.
func TestNoUnixSocketInDNSClusters(t *testing.T) {
	for _, resolution := range []registry.Resolution{registry.DNSLB, registry.DNSRoundRobinLB} {
		svc := service(resolution)
		both := []*registry.Endpoint{endpoint("/run/s", port(0)), endpoint("@s", port(0)), endpoint("b.example.com")}
		got := envoy.Cluster(svc, svc.Ports[0], both, nil, envoy.ForEnvoy)
		check(t, "endpoints", text(got.GetLoadAssignment()), []string{"//@0=1 b.example.com:8080/HEALTHY"})
		if got := envoy.Cluster(svc, svc.Ports[0], both[:2], nil, envoy.ForEnvoy); got != nil {
			t.Errorf("a cluster of unix sockets: %v", got)
		}
	}
}

func TestClusterMetadata(t *testing.T) {
	svc := service(registry.ClientSideLB)
	svc.ServiceAccounts = []string{"spiffe://b", "spiffe://a"}
	svc.Attributes.Namespace = "ns"
	var got []string
	c := envoy.Cluster(svc, svc.Ports[0], nil, []string{"spiffe://c", "spiffe://a"}, envoy.ForEnvoy)
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

func TestHTTPRoutes(t *testing.T) {
	svc := service(registry.ClientSideLB)
	p := svc.Ports[0]
	a := envoy.VirtualHost(svc, p, []string{"10.1.1.1", "2001:db8::1", "10.2.0.0/16", "0.0.0.0"})
	check(t, "domains", a.GetDomains(), []string{
		"a.com", "a.com:80", "10.1.1.1", "10.1.1.1:80", "[2001:db8::1]", "[2001:db8::1]:80",
	})
	svc.Hostname = "B.com"
	b := envoy.VirtualHost(svc, p, []string{"10.1.1.1"})
	svc.Hostname = "b.com"
	again := envoy.VirtualHost(svc, p, nil)
	rc := envoy.HTTPRoutes(80, []*routev3.VirtualHost{a, b, again})
	var domains [][]string
	for _, h := range rc.GetVirtualHosts() {
		domains = append(domains, h.GetDomains())
	}
	check(t, "no domain twice", domains[1:], [][]string{{"b.com", "b.com:80"}})
	tcp := *p
	tcp.Protocol = registry.ProtocolTCP
	if envoy.VirtualHost(svc, &tcp, nil) != nil {
		t.Error("a virtual host for TCP")
	}
}

func TestNames(t *testing.T) {
	p, h, ok := envoy.ParseClusterName(envoy.ClusterName(80, "a.com"))
	check(t, "cluster", fmt.Sprintln(p, h, ok), "80 a.com true\n")
	p, h, ok = envoy.ParseListenerName(envoy.ListenerName(80, "a.com"))
	check(t, "listener", fmt.Sprintln(p, h, ok), "80 a.com true\n")
	p, h, ok = envoy.ParseListenerName("a.com")
	check(t, "bare listener", fmt.Sprintln(p, h, ok), "0 a.com true\n")
	for _, name := range []string{
		"", "80", "outbound|80|v1|a.com", "outbound|080||a.com", "outbound|0||a.com", "outbound|+1||a.com",
		"outbound|65536||a.com", "outbound|80||", "inbound|80||a.com",
	} {
		if _, _, ok := envoy.ParseClusterName(name); ok {
			t.Errorf("ParseClusterName(%q) ok", name)
		}
	}
	for _, name := range []string{"", "a.com:", ":80", "a.com:080", "a:b:c", "outbound|80||a.com"} {
		if _, _, ok := envoy.ParseListenerName(name); ok {
			t.Errorf("ParseListenerName(%q) ok", name)
		}
	}
}
