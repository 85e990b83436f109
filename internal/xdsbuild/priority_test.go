// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

func labels(l string) func(*registry.Endpoint) {
	return func(e *registry.Endpoint) {
		e.Shared.Labels = registry.Labels{}
		for kv := range strings.FieldsSeq(l) {
			k, v, _ := strings.Cut(kv, "=")
			e.Shared.Labels[k] = v
		}
	}
}

// fiveLocalities are near and far endpoints with different last numbers in their addresses.
func fiveLocalities() []*registry.Endpoint {
	return []*registry.Endpoint{
		endpoint("10.1.0.1", locality("eu/a/1"), labels("version=v1 topology.kubernetes.io/region=eu topology.kubernetes.io/zone=a")),
		endpoint("10.1.0.2", locality("eu/a/2"), labels("version=v2 topology.kubernetes.io/region=eu topology.kubernetes.io/zone=a")),
		endpoint("10.1.0.3", locality("eu/b/1"), labels("version=v1 topology.kubernetes.io/region=eu topology.kubernetes.io/zone=b")),
		endpoint("10.1.0.4", locality("us/a/1"), labels("version=v2 topology.kubernetes.io/region=us topology.kubernetes.io/zone=a")),
		endpoint("10.1.0.5", locality("asia/a/1"), labels("version=v1 topology.kubernetes.io/region=asia topology.kubernetes.io/zone=a")),
	}
}

// near is an assignment in short: "priority: locality=weight …" per priority.
func near(a *endpointv3.ClusterLoadAssignment) string {
	var out []string
	for _, line := range text(a) {
		line = strings.ReplaceAll(strings.ReplaceAll(line, ":8080/HEALTHY", ""), "10.1.0.", "")
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

// TestLocality: priorities and weights of localities equal the recorded cases of the same names.
func TestLocality(t *testing.T) {
	const outlier = `"outlierDetection":{"consecutive5xxErrors":5}`
	rule := func(setting string) string {
		return `{"trafficPolicy":{` + outlier + `,"loadBalancer":{` + setting + `}}}`
	}
	const distribute = `"localityLbSetting":{"distribute":[
		{"from":"eu/a/*","to":{"eu/a/*":80,"eu/b/*":15,"us/*":5}},{"from":"us/*","to":{"us/*":60,"asia/a/1":40}}]}`
	const failover = `"localityLbSetting":{"failover":[{"from":"eu","to":"asia"},{"from":"us","to":"eu"}]}`
	const flat = "asia/a/1@0=1 5, eu/a/1@0=1 1, eu/a/2@0=1 2, eu/b/1@0=1 3, us/a/1@0=1 4"
	const distance = "eu/a/1@0=1 1, eu/a/2@1=1 2, eu/b/1@2=1 3, asia/a/1@3=1 5, us/a/1@3=1 4"
	tests := []struct {
		name, rule, mesh, locality, labels string
		service                            func(*registry.Service)
		want                               string
	}{
		{name: "no rule", locality: "eu/a/1", want: flat},
		{name: "failover default", locality: "eu/a/1", rule: rule(""), want: distance},
		{
			name: "failover default, another zone", locality: "eu/b/9", rule: rule(""),
			want: "eu/b/1@0=1 3, eu/a/1@1=1 1, eu/a/2@1=1 2, asia/a/1@2=1 5, us/a/1@2=1 4",
		},
		{name: "failover default, another region", locality: "mars/x/y", rule: rule(""), want: flat},
		{
			name: "failover default, zone without subzone", locality: "eu/a", rule: rule(""),
			want: "eu/a/1@0=1 1, eu/a/2@0=1 2, eu/b/1@1=1 3, asia/a/1@2=1 5, us/a/1@2=1 4",
		},
		{
			name: "failover default, region alone", locality: "eu", rule: rule(""),
			want: "eu/a/1@0=1 1, eu/a/2@0=1 2, eu/b/1@0=1 3, asia/a/1@1=1 5, us/a/1@1=1 4",
		},
		{name: "no locality", rule: rule(""), want: flat},
		{
			name: "failover rules", locality: "eu/a/1", rule: rule(failover),
			want: "eu/a/1@0=1 1, eu/a/2@1=1 2, eu/b/1@2=1 3, asia/a/1@3=1 5, us/a/1@4=1 4",
		},
		{
			name: "failover rules, another region", locality: "us/a/1", rule: rule(failover),
			want: "us/a/1@0=1 4, eu/a/1@1=1 1, eu/a/2@1=1 2, eu/b/1@1=1 3, asia/a/1@2=1 5",
		},
		{name: "failover without outlier detection", locality: "eu/a/1", rule: `{"trafficPolicy":{"loadBalancer":{` + failover + `}}}`, want: flat},
		{
			name: "failover priority", locality: "eu/a/1", labels: "version=v1", rule: rule(`"localityLbSetting":{"failoverPriority":["version"]}`),
			want: "asia/a/1@0=1 5, eu/a/1@0=1 1, eu/b/1@0=1 3, eu/a/2@1=1 2, us/a/1@1=1 4",
		},
		{
			name: "failover priority, values", locality: "eu/a/1", labels: "version=x topology.kubernetes.io/region=eu",
			rule: rule(`"localityLbSetting":{"failoverPriority":["version=v1","topology.kubernetes.io/region"]}`),
			want: "eu/a/1@0=1 1, eu/b/1@0=1 3, asia/a/1@1=1 5, eu/a/2@2=1 2, us/a/1@2=1 4",
		},
		{
			name: "failover priority, then failover", locality: "eu/a/1", labels: "version=v1",
			rule: rule(`"localityLbSetting":{"failoverPriority":["version"],"failover":[{"from":"eu","to":"us"}]}`),
			want: "eu/a/1@0=1 1, eu/b/1@1=1 3, asia/a/1@2=1 5, eu/a/2@3=1 2, us/a/1@4=1 4",
		},
		{
			name: "distribute", locality: "eu/a/1", rule: rule(distribute),
			want: "eu/a/1@0=40 1, eu/a/2@0=40 2, eu/b/1@0=15 3, us/a/1@0=5 4",
		},
		{name: "distribute, another rule", locality: "us/a/1", rule: rule(distribute), want: "asia/a/1@0=40 5, us/a/1@0=60 4"},
		{name: "distribute, no rule fits", locality: "asia/a/1", rule: rule(distribute), want: flat},
		{
			name: "distribute, rounded up", locality: "eu/a/1", rule: rule(`"localityLbSetting":{"distribute":[{"from":"eu","to":{"eu":50,"asia":50}}]}`),
			want: "asia/a/1@0=50 5, eu/a/1@0=17 1, eu/a/2@0=17 2, eu/b/1@0=17 3",
		},
		{name: "switched off", locality: "eu/a/1", rule: rule(`"localityLbSetting":{"enabled":false}`), want: flat},
		{name: "switched off for the mesh", locality: "eu/a/1", rule: rule(""), mesh: `{"localityLbSetting":{"enabled":false}}`, want: flat},
		{
			name: "switched off for the mesh, on in the rule", locality: "eu/a/1", rule: rule(`"localityLbSetting":{"enabled":true}`),
			mesh: `{"localityLbSetting":{"enabled":false}}`, want: distance,
		},
		{
			name: "outlier detection of the mesh", locality: "eu/a/1",
			mesh: `{"defaultTrafficPolicy":{"outlierDetection":{"consecutive5xxErrors":4}}}`, want: distance,
		},
		{
			name: "distribute of the mesh", locality: "eu/a/1", mesh: `{"localityLbSetting":{"distribute":[{"from":"eu","to":{"us":100}}]}}`,
			want: "us/a/1@0=100 4",
		},
		{
			name: "traffic distribution", locality: "eu/a/1",
			service: func(s *registry.Service) {
				s.Attributes.TrafficDistribution = registry.TrafficDistributionPreferSameZone
			},
			want: "eu/a/1@0=1 1, eu/a/2@0=1 2, eu/b/1@1=1 3, asia/a/1@2=1 5, us/a/1@2=1 4",
		},
		{
			name: "zone aware", locality: "eu/a/1", rule: `{"trafficPolicy":{"loadBalancer":{"zoneAwareLbSetting":{"enabled":true,"failover":[{"from":"eu","to":"us"}]}}}}`,
			want: "eu/a/1@0=1 1, eu/a/2@0=1 2, eu/b/1@0=1 3, us/a/1@1=1 4, asia/a/1@2=1 5",
		},
		{
			name: "zone aware without failover", locality: "us/a/1", rule: `{"trafficPolicy":{"loadBalancer":{"zoneAwareLbSetting":{"enabled":true}}}}`,
			want: "us/a/1@0=1 4, asia/a/1@1=1 5, eu/a/1@1=1 1, eu/a/2@1=1 2, eu/b/1@1=1 3",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			mesh := &meshconfig.MeshConfig{}
			if tc.mesh != "" {
				mesh = parse(t, tc.mesh, mesh)
			}
			svc := service(registry.ClientSideLB)
			if tc.service != nil {
				tc.service(svc)
			}
			u := upstream(t, svc, tc.rule, "", mesh)
			u.Endpoints = fiveLocalities()
			own := endpoint("", labels(tc.labels)).Shared.Labels
			u.Proxy = &registry.Proxy{Locality: tc.locality, Labels: own}
			got := u.LoadAssignment()
			if err := accepted(u.Client, got); err != nil {
				t.Error(err)
			}
			check(t, "localities", near(got), tc.want)
		})
	}
}

// TestSubsetAssignment: a subset has the endpoints whose labels contain its own; of
// two with one address the one that has them.
func TestSubsetAssignment(t *testing.T) {
	u := upstream(t, service(registry.ClientSideLB), `{"subsets":[{"name":"v2","labels":{"version":"v2"}}]}`, "v2", nil)
	u.Endpoints = append(fiveLocalities(), endpoint("10.1.0.1", locality("eu/a/1"), labels("version=v2")))
	check(t, "endpoints", near(u.LoadAssignment()), "eu/a/1@0=1 1, eu/a/2@0=1 2, us/a/1@0=1 4")
	check(t, "name", u.LoadAssignment().GetClusterName(), "outbound|80|v2|a.com")
	u.Service.Hostname = "a|b"
	if got := u.LoadAssignment(); got != nil {
		t.Errorf("an assignment without a name: %v", got)
	}
}

// TestNetworks: endpoints in other networks are replaced by gateways, as recorded
// in the cases of networks.
func TestNetworks(t *testing.T) {
	in := func(network string, mutual bool, more ...func(*registry.Endpoint)) func(*registry.Endpoint) {
		return func(e *registry.Endpoint) {
			e.Shared.Network = network
			if mutual {
				e.Shared.TLSMode = "istio"
			}
			for _, m := range more {
				m(e)
			}
		}
	}
	gateway := func(network, addr string) registry.NetworkGateway {
		return registry.NetworkGateway{Network: network, Addr: addr, Port: 15443}
	}
	one := []registry.NetworkGateway{gateway("n2", "172.16.0.2"), gateway("n4", "a.host.name")}
	two := append(slices.Clone(one), gateway("n2", "172.16.0.3"))
	endpoints := func() []*registry.Endpoint {
		return []*registry.Endpoint{
			endpoint("10.1.0.1", in("n1", true)), endpoint("10.2.0.1", in("n2", true, labels("version=v1"))),
			endpoint("10.2.0.2", in("n2", true, weight(2))), endpoint("10.2.0.3", in("n2", false)), endpoint("10.3.0.1", in("n3", true)),
		}
	}
	spelled := []registry.NetworkGateway{
		gateway("n2", "2001:DB8::0:2"), gateway("n2", "2001:db8::2"),
		{Network: "n2", Addr: "2001:0db8::2", Port: 15443, Cluster: "c", HBONEPort: 15008},
	}
	far := func() []*registry.Endpoint {
		return []*registry.Endpoint{
			endpoint("10.2.0.1", in("n2", true, locality("eu"))), endpoint("10.2.0.2", in("n2", true, locality("us"))),
		}
	}
	tests := []struct {
		name, network string
		client        envoy.Client
		gateways      []registry.NetworkGateway
		endpoints     []*registry.Endpoint
		rule          string
		want          []string
	}{
		{
			name: "another network", network: "n1", gateways: one, endpoints: endpoints(),
			want: []string{"//@0=5 10.1.0.1:8080*1/HEALTHY 10.3.0.1:8080*1/HEALTHY 172.16.0.2:15443*3/UNKNOWN"},
		},
		{
			name: "the same network", network: "n2", gateways: one, endpoints: endpoints(),
			want: []string{"//@0=6 10.1.0.1:8080*1/HEALTHY 10.2.0.1:8080*1/HEALTHY 10.2.0.2:8080*2/HEALTHY 10.2.0.3:8080*1/HEALTHY 10.3.0.1:8080*1/HEALTHY"},
		},
		{
			name: "no network", gateways: one, endpoints: endpoints(),
			want: []string{"//@0=5 10.1.0.1:8080*1/HEALTHY 10.3.0.1:8080*1/HEALTHY 172.16.0.2:15443*3/UNKNOWN"},
		},
		{
			name: "two gateways", network: "n1", gateways: two, endpoints: endpoints(),
			want: []string{"//@0=10 10.1.0.1:8080*2/HEALTHY 10.3.0.1:8080*2/HEALTHY 172.16.0.2:15443*3/UNKNOWN 172.16.0.3:15443*3/UNKNOWN"},
		},
		{
			name: "one gateway in several spellings", network: "n1", gateways: spelled, endpoints: endpoints(),
			want: []string{"//@0=5 10.1.0.1:8080*1/HEALTHY 10.3.0.1:8080*1/HEALTHY 2001:db8::2:15443*3/UNKNOWN"},
		},
		{
			name: "no mutual TLS by rule", network: "n1", gateways: one, endpoints: endpoints(), rule: `{"trafficPolicy":{"tls":{"mode":"DISABLE"}}}`,
			want: []string{"//@0=2 10.1.0.1:8080*1/HEALTHY 10.3.0.1:8080*1/HEALTHY"},
		},
		{
			name: "in two localities", network: "n1", gateways: one, endpoints: far(),
			want: []string{"eu//@0=1 172.16.0.2:15443*1/UNKNOWN", "us//@0=1 172.16.0.2:15443*1/UNKNOWN"},
		},
		{
			name: "in two localities, for gRPC", network: "n1", client: envoy.ForGRPC, gateways: one, endpoints: far(),
			want: []string{"eu//@0=2 172.16.0.2:15443*2/UNKNOWN"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			u := upstream(t, service(registry.ClientSideLB), tc.rule, "", nil)
			u.Endpoints, u.Networks, u.Client = tc.endpoints, xdsbuild.NewNetworks(tc.gateways), tc.client
			u.Proxy = &registry.Proxy{Network: tc.network}
			if err := accepted(u.Client, u.LoadAssignment()); err != nil {
				t.Error(err)
			}
			check(t, "endpoints", text(u.LoadAssignment()), tc.want)
		})
	}
}

// TestAutoPassthrough: gateways pass connections on to endpoints that take mutual
// TLS, and add none.
func TestAutoPassthrough(t *testing.T) {
	u := upstream(t, service(registry.ClientSideLB), "", "", nil)
	u.AutoPassthrough, u.Gateway = true, true
	u.Endpoints = []*registry.Endpoint{
		endpoint("10.1.0.1", func(e *registry.Endpoint) { e.Shared.TLSMode = "istio" }), endpoint("10.1.0.2"),
	}
	check(t, "endpoints", text(u.LoadAssignment()), []string{"//@0=1 10.1.0.1:8080/HEALTHY"})
	c := u.Cluster()
	check(t, "name", c.GetName(), "outbound_.80_._.a.com")
	if c.GetTransportSocket() != nil || c.GetTransportSocketMatches() != nil {
		t.Errorf("TLS: %v", c)
	}
}
