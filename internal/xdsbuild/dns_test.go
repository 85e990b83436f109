// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	commondns "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestUpstreamDNS: the cluster of a DNS service has the endpoints of the subset only, with their
// priorities.
func TestUpstreamDNS(t *testing.T) {
	labelled := func(l registry.Labels) func(*registry.Endpoint) {
		return func(e *registry.Endpoint) { e.Shared.Labels = l }
	}
	endpoints := []*registry.Endpoint{
		endpoint("eu.example.com", locality("eu/a/1"), weight(2), labelled(registry.Labels{"region": "eu"})),
		endpoint("us.example.com", locality("us/a/1"), labelled(registry.Labels{"region": "us"})),
	}
	const rule = `{"trafficPolicy":{"outlierDetection":{"consecutive5xxErrors":5}},"subsets":[{"name":"us","labels":{"region":"us"}},{"name":"none","labels":{"region":"x"}}]}`
	for _, tc := range []struct {
		name, subset string
		addresses    []string
		want         []string
		family       commondns.DnsLookupFamily
	}{
		{
			name: "the service", addresses: []string{"10.9.0.1"}, family: commondns.DnsLookupFamily_V4_ONLY,
			want: []string{"eu/a/1@0=2 eu.example.com:8080*2/HEALTHY", "us/a/1@1=1 us.example.com:8080/HEALTHY"},
		},
		{
			name: "a subset", subset: "us", addresses: []string{"2001:db8::1"}, family: commondns.DnsLookupFamily_V6_ONLY,
			want: []string{"us/a/1@0=1 us.example.com:8080/HEALTHY"},
		},
		{name: "a subset without endpoints", subset: "none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := upstream(t, service(registry.DNSLB), rule, tc.subset, nil)
			u.Endpoints = endpoints
			u.Proxy = &registry.Proxy{Locality: "eu/a/1", IPAddresses: tc.addresses}
			c := u.Cluster()
			if c == nil {
				check(t, "no cluster", []string(nil), tc.want)
				return
			}
			check(t, "endpoints", text(c.GetLoadAssignment()), tc.want)
			check(t, "DNS", dnsOf(t, c).String(), (&dnsv3.DnsCluster{
				DnsLookupFamily: tc.family, DnsJitter: durationpb.New(100 * time.Millisecond), DnsRefreshRate: durationpb.New(time.Minute),
				RespectDnsTtl: true,
			}).String())
		})
	}
}

// dnsOf returns how a cluster asks DNS.
func dnsOf(t *testing.T, c *clusterv3.Cluster) *dnsv3.DnsCluster {
	t.Helper()
	config := &dnsv3.DnsCluster{}
	if err := c.GetClusterType().GetTypedConfig().UnmarshalTo(config); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestFailoverPriorityOfDNS: the labels of a failoverPriority give priorities to the
// endpoints of a DNS service wherever they are.
func TestFailoverPriorityOfDNS(t *testing.T) {
	u := upstream(t, service(registry.DNSLB), `{"trafficPolicy":{"outlierDetection":{},"loadBalancer":{"localityLbSetting":{"failoverPriority":["tier"]}}}}`, "", nil)
	u.Endpoints = []*registry.Endpoint{
		endpoint("a.example.com", locality("eu/a/1"), labels("tier=green")), endpoint("b.example.com", locality("eu/a/1"), labels("tier=blue")),
		endpoint("c.example.com", locality("us/a/1"), labels("tier=blue")), endpoint("d.example.com", locality("asia/a/1"), labels("tier=green")),
	}
	u.Proxy = &registry.Proxy{Locality: "eu/a/1", Labels: registry.Labels{"tier": "blue"}}
	c := u.Cluster()
	if err := accepted(u.Client, c); err != nil {
		t.Error(err)
	}
	check(t, "endpoints", text(c.GetLoadAssignment()), []string{
		"eu/a/1@0=1 b.example.com:8080/HEALTHY", "us/a/1@0=1 c.example.com:8080/HEALTHY",
		"asia/a/1@1=1 d.example.com:8080/HEALTHY", "eu/a/1@1=1 a.example.com:8080/HEALTHY",
	})
}

// TestHostNamesOfDNSClusters: Envoy resolves the first one of an endpoint only.
func TestHostNamesOfDNSClusters(t *testing.T) {
	svc := service(registry.DNSLB)
	e := endpoint("a.example.com")
	e.Addresses = append(e.Addresses, "b.example.com")
	c := xdsbuild.Cluster(svc, svc.Ports[0], []*registry.Endpoint{e}, nil, envoy.ForEnvoy)
	check(t, "endpoints", text(c.GetLoadAssignment()), []string{"//@0=1 a.example.com:8080/HEALTHY"})
}

// TestNoUnixSocketInDNSClusters: a STATIC and a DNS entry may share a host, whose
// cluster is then of one kind but gets the endpoints of both.
func TestNoUnixSocketInDNSClusters(t *testing.T) {
	for _, resolution := range []registry.Resolution{registry.DNSLB, registry.DNSRoundRobinLB} {
		svc := service(resolution)
		both := []*registry.Endpoint{endpoint("/run/s", port(0)), endpoint("@s", port(0)), endpoint("b.example.com")}
		got := xdsbuild.Cluster(svc, svc.Ports[0], both, nil, envoy.ForEnvoy)
		check(t, "endpoints", text(got.GetLoadAssignment()), []string{"//@0=1 b.example.com:8080/HEALTHY"})
		if got := xdsbuild.Cluster(svc, svc.Ports[0], both[:2], nil, envoy.ForEnvoy); got != nil {
			t.Errorf("a cluster of unix sockets: %v", got)
		}
	}
}
