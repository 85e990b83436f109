// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/randomobjects"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestSidecarsShareRoutes: a sidecar has the routes that a server builds which has no other
// clients, whatever was built before for sidecars of other namespaces and with other labels. Two
// namespaces that differ in nothing share their virtual hosts.
func TestSidecarsShareRoutes(t *testing.T) {
	for _, seed := range histories.Seeds(t, 60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 38))
			objects := slices.Concat(randomSet(t, r, 60), delegating(t))
			var nodes []*core.Node
			for _, namespace := range []string{"shop", "billing", "ingress", "far", "away"} {
				nodes = append(nodes, in("sidecar", namespace, "app=web"), in("sidecar", namespace, "app=job"))
			}
			r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
			start := func() *scene { return stage(t, traffic.Options{Mesh: modelMesh()}, objects, cartPopulation()) }
			together := start()
			var built []map[string]*routev3.RouteConfiguration
			for _, n := range nodes {
				built = append(built, together.routesOf(n, false))
			}
			for i, n := range nodes {
				alone := start()
				if diff := cmp.Diff(alone.routesOf(n, true), built[i], protocmp.Transform()); diff != "" {
					t.Errorf("%v has other routes beside other clients (-alone +together):\n%s", n, diff)
				}
				alone.close()
			}
		})
	}
	s := stage(t, traffic.Options{}, nil, cartPopulation())
	far, away := s.routesOf(in("sidecar", "far"), false)["80"], s.routesOf(in("sidecar", "away"), false)["80"]
	if far.GetVirtualHosts()[0] != away.GetVirtualHosts()[0] {
		t.Error("namespaces that see the same services do not share their virtual hosts")
	}
}

// delegating returns a VirtualService whose delegate has matches and destinations that depend on the
// sidecar and the port.
func delegating(t *testing.T) configList {
	t.Helper()
	rule := `{"host": "catalog.shop.svc.cluster.local", "exportTo": ["."], "trafficPolicy": {"loadBalancer": {"consistentHash": {"httpHeaderName": "%s"}}}}`
	return objectsOf(t,
		`VirtualService shop/root {"hosts": ["catalog.shop.svc.cluster.local"], "http": [{"delegate": {"name": "leaf"}}]}`,
		`VirtualService shop/leaf {"http": [
			{"match": [{"uri": {"prefix": "/job"}, "sourceLabels": {"app": "job"}}], "directResponse": {"status": 501}},
			{"match": [{"uri": {"prefix": "/ninety"}, "port": 90}], "directResponse": {"status": 503}},
			{"match": [{"uri": {"prefix": "/far"}, "sourceNamespace": "far"}], "directResponse": {"status": 502}},
			{"route": [{"destination": {"host": "catalog", "port": {"number": 80}}}]}]}`,
		"DestinationRule away/hash "+fmt.Sprintf(rule, "x-away"), "DestinationRule billing/hash "+fmt.Sprintf(rule, "x-billing"))
}

// randomSet returns up to n random objects, of which later ones replace others.
func randomSet(t *testing.T, r *rand.Rand, n int) configList {
	t.Helper()
	at := make(map[configstore.ConfigKey]int)
	var out configList
	for i := range n {
		kind, name, namespace, spec := randomobjects.Dice{Rand: r}.Object()
		c := &configstore.Config{Spec: spec, Meta: configstore.Meta{
			GroupVersionKind: kind, Name: name, Namespace: namespace, CreationTimestamp: time.Unix(int64(i), 0),
		}}
		if j, again := at[c.Key()]; again {
			out[j] = c
			continue
		}
		at[c.Key()] = len(out)
		out = append(out, c)
	}
	return out
}

// routesOf builds the route configurations of a client that is not connected, by ascending ports or
// the other way round.
func (s *scene) routesOf(n *core.Node, descending bool) map[string]*routev3.RouteConfiguration {
	s.t.Helper()
	view, out := s.view(n), make(map[string]*routev3.RouteConfiguration)
	names := append(modelNames(n)[envoy.RouteType], "90")
	if descending {
		slices.Reverse(names)
	}
	for _, name := range names {
		m, err := s.provided.lookup(view, envoy.RouteType, name).Build()
		if m == nil {
			s.must(err) // an error beside a message is about parts that are left out
			continue
		}
		out[name] = m.(*routev3.RouteConfiguration)
	}
	return out
}
