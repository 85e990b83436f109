// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"testing"
)

// remember notes which routes have been recorded of the client.
func (c *client) remember(recorded recordedProxy) {
	for _, variant := range recorded[routes] {
		for _, r := range variant {
			c.recorded[name(routes, r)] = struct{}{}
		}
	}
}

// t75 leaves out resources of deleted or hidden services that a gRPC client retains: the listener
// and routes stay, and the endpoints are removed.
func (c *client) t75(known *facts, recorded recordedProxy, got map[section]resources) map[section]resources {
	if c.spec.Kind != kindGRPC {
		return got
	}
	kept := func(route string) bool {
		has := func(variant resources) bool { return find(routes, variant, route) != nil }
		_, was := c.recorded[route]
		return was && !slices.ContainsFunc(recorded[routes], has)
	}
	out := make(map[section]resources)
	for _, l := range got[listeners] {
		if of := routesOf(resources{l}); len(of) == 0 || !slices.ContainsFunc(of, kept) {
			out[listeners] = append(out[listeners], l)
		}
	}
	for _, r := range got[routes] {
		if !kept(name(routes, r)) {
			out[routes] = append(out[routes], r)
		}
	}
	used, dropped := clustersOf(out[routes]), clustersOf(got[routes])
	for _, s := range []section{clusters, endpoints} {
		for _, r := range got[s] {
			n := name(s, r)
			host, _ := parseCluster(n)
			leaks := s == endpoints && len(objects(r, "endpoints")) > 0 && len(known.of(host.host, c.spec)) == 0
			if slices.Contains(used, n) || !slices.Contains(dropped, n) || leaks {
				out[s] = append(out[s], r)
			}
		}
	}
	return out
}

// TestKept: when its service goes, a gRPC client keeps the listener, the routes and the
// cluster, without endpoints, and t75 takes just that for nothing.
func TestKept(t *testing.T) {
	service := `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: quotes, namespace: shop}
spec:
  hosts: [quotes.shop.svc.cluster.local]
  ports: [{number: 9000, name: grpc, protocol: GRPC}]
  resolution: STATIC
  endpoints: [{address: 10.1.0.1}]
`
	sys, err := newSystem(t.Context(), &scenario{Proxies: []proxySpec{{
		Name: "client", Kind: kindGRPC, IP: "10.9.0.4", Namespace: "shop", Listeners: []string{"quotes.shop.svc.cluster.local:9000"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.stop()
	c := sys.clients[0]
	after := func(st step) map[section]resources {
		t.Helper()
		if _, err := sys.step(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		got, err := c.resources()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	have := after(step{Apply: &service})
	recorded := recordedProxy{routes: {have[routes]}}
	c.remember(recorded)
	kept := after(step{Delete: &objectRef{Kind: "ServiceEntry", Namespace: "shop", Name: "quotes"}})
	for s, left := range c.t75(newFacts(sys), recordedProxy{}, kept) {
		t.Errorf("%s: %v", s, left)
	}
	for _, s := range sections {
		if len(have[s]) != 1 || len(kept[s]) != 1 {
			t.Errorf("%s: %v, then %v", s, have[s], kept[s])
		}
		if got := c.t75(newFacts(sys), recorded, kept)[s]; len(got) != 1 {
			t.Errorf("%s that are still recorded: %v", s, got)
		}
	}
	full := map[section]resources{listeners: kept[listeners], routes: kept[routes], endpoints: have[endpoints]}
	if got := c.t75(newFacts(sys), recordedProxy{}, full); len(got[endpoints]) != 1 {
		t.Error("endpoints of a service that is gone are taken for nothing")
	}
}
