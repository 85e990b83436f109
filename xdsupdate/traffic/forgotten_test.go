// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestLoweredSizes runs the models with all caches and buffers too small.
func TestLoweredSizes(t *testing.T) {
	t.Parallel()
	testmain.Lowered(t, "^(TestModel|TestModelOfLimits|TestManyChangesAtOnce|TestServicesAfterManyObjects|TestImportsAfterManyScopes)$")
}

// agedService is a service of the namespace shop with a creation time.
func agedService(host registry.Hostname, seconds int64) *registry.Service {
	svc := testService("shop", host, 80)
	svc.CreationTime = time.Unix(seconds, 0)
	return svc
}

// TestServicesAfterManyObjects: after a push of so many objects that the index is made anew, a
// service that comes or goes still changes what a rule for a wildcard has room for.
func TestServicesAfterManyObjects(t *testing.T) {
	var services []*registry.Service
	for i := range 5 {
		services = append(services, agedService(registry.Hostname(fmt.Sprintf("s%d.example.com", i)), int64(10+i)))
	}
	s := stage(t, traffic.Options{Limits: traffic.Limits{Clusters: 8, HashEntries: 3 * 1024}}, objectsOf(t,
		`DestinationRule shop/subsets {"host": "*.example.com", "subsets": [{"name": "v1"}, {"name": "v2"}]}`,
		`DestinationRule other/hashed {"host": "*.example.com", "exportTo": ["."], "trafficPolicy": {"loadBalancer": {"consistentHash": {"httpHeaderName": "x", "ringHash": {"minimumRingSize": "1024"}}}}}`,
	), populate(services...))
	shop, other := s.follow(in("sidecar", "shop"), envoy.ClusterType), s.follow(in("sidecar", "other"), envoy.ClusterType)
	routes := s.follow(in("sidecar", "other"), envoy.RouteType, "80")
	many := make([]string, 70)
	for round, change := range []func() error{
		func() error { return s.kubernetes.SetService(agedService("old.example.com", 1)) },
		func() error { return s.kubernetes.RemoveService("s0.example.com", "shop") },
	} {
		for i := range many {
			many[i] = fmt.Sprintf(`Gateway ingress/many-%d {"servers": [{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["h%d.com"]}]}`, i, round)
		}
		s.change(objectsOf(t, many...))
		shop.sent()
		s.must(change())
		s.applied()
		for _, f := range []*follower{shop, other, routes} {
			f.check()
		}
		if got, want := shop.sent(), "outbound|80|v1|s3.example.com"; !slices.Contains(got, want) {
			t.Errorf("round %d: %q are sent or removed, without %s", round, got, want)
		}
	}
}

// TestImportsAfterManyPushes: a service that comes takes the place of a newer one in a Sidecar
// whose imports nothing has concerned for long.
func TestImportsAfterManyPushes(t *testing.T) {
	s := stage(t, traffic.Options{Limits: traffic.Limits{Imports: 3}}, objectsOf(t,
		`Sidecar shop/s {"egress": [{"port": {"number": 80, "protocol": "HTTP", "name": "http"}, "hosts": ["*/a.com"]}, {"hosts": ["*/*"]}]}`),
		populate(agedService("a.com", 1), agedService("b.com", 9)))
	f := s.follow(in("sidecar", "shop"), envoy.ClusterType)
	for i := range 70 {
		s.change(objectsOf(t, fmt.Sprintf(`Gateway ingress/g {"servers": [{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["h%d.com"]}]}`, i)))
	}
	if got := f.sent(); len(got) > 0 {
		t.Fatalf("%q are sent for Gateways", got)
	}
	s.must(s.kubernetes.SetService(agedService("c.com", 2)))
	s.applied()
	f.check()
	if got := f.sent(); !slices.Equal(got, []string{"outbound|80||b.com", "outbound|80||c.com"}) {
		t.Errorf("%q are sent or removed", got)
	}
}

// TestImportsAfterManyScopes: a service that comes or goes changes what a Sidecar has room for, also
// after clients of so many namespaces have asked that the Sidecar's scope was forgotten.
func TestImportsAfterManyScopes(t *testing.T) {
	aged := func(host registry.Hostname, seconds int64) *registry.Service {
		svc := testService("shop", host, 80, 8080)
		svc.CreationTime = time.Unix(seconds, 0)
		return svc
	}
	s := stage(t, traffic.Options{Limits: traffic.Limits{Imports: 5}}, objectsOf(t, `Sidecar shop/two {"egress": [
		{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*/*"]}, {"hosts": ["*/*"]}]}`,
	), populate(aged("a.example.com", 11), aged("b.example.com", 12), aged("c.example.com", 13)))
	shop := s.follow(in("sidecar", "shop"), envoy.ClusterType)
	for _, change := range []func() error{
		func() error { return s.kubernetes.SetService(aged("old.example.com", 1)) },
		func() error { return s.kubernetes.RemoveService("old.example.com", "shop") },
	} {
		for i := range 5 { // the limit of lowered sizes is at most 3
			s.follow(in("sidecar", fmt.Sprint("n", i)), envoy.ClusterType)
		}
		shop.sent()
		s.must(change())
		s.applied()
		shop.check()
		if got, want := shop.sent(), "outbound|8080||b.example.com"; !slices.Contains(got, want) {
			t.Errorf("sent %v, want %s among them", got, want)
		}
	}
}
