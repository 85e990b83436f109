// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"slices"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestBatchIsOnePush writes a route to a subset and the subset in one batch, in either
// order, while a handler of the program waits at each event until everything that was
// pushed has arrived. No client is sent the route without its cluster.
func TestBatchIsOnePush(t *testing.T) {
	for _, kinds := range [][]configstore.GroupVersionKind{
		{istio.VirtualService, istio.DestinationRule}, {istio.DestinationRule, istio.VirtualService},
	} {
		t.Run(kinds[0].Kind+" first", func(t *testing.T) {
			w := startTown(t, configsOf(t, neighbour, 1), ads.Options{})
			seen := 0
			for _, kind := range kinds {
				w.store.RegisterEventHandler(kind, func(_, curr configstore.Config, event configstore.Event) {
					if event != configstore.EventUpdate {
						return // what was there before
					}
					seen++
					ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
					defer cancel()
					w.must(w.server.WaitApplied(ctx, nil))
					w.checkReferences(curr.GroupVersionKind.Kind)
				})
			}
			var batch []configstore.Mutation
			for _, kind := range kinds {
				now := w.store.Get(kind, "edge", neighbour)
				next := configstore.Config{Meta: now.Meta, Spec: proto.Clone(now.Spec)}
				switch spec := next.Spec.(type) {
				case *networking.VirtualService:
					spec.GetHttp()[1].GetRoute()[0].GetDestination().Subset = "v2"
				case *networking.DestinationRule:
					spec.Subsets = append(spec.GetSubsets(), &networking.Subset{Name: "v2", Labels: map[string]string{"version": "v1"}})
				}
				batch = append(batch, configstore.Mutation{Op: configstore.OpUpdate, Config: next})
			}
			store, _ := configstore.As[configstore.BatchWriter](w.store)
			_, err := store.Apply(batch...)
			w.must(err)
			w.store.Drain()
			w.applied()
			w.checkReferences("the end")
			if cluster := "outbound|80|v2|" + neighbour + ".example.com"; seen != 2 || !slices.Contains(w.referred(), cluster) {
				t.Errorf("%d events, and routes to %q", seen, w.referred())
			}
		})
	}
}

// referred returns the clusters that the routes of the router lead to.
func (w *town) referred() []string {
	w.t.Helper()
	var out []string
	for _, r := range w.clients["router"].State().Resources(envoy.RouteType) {
		m, err := r.Message()
		w.must(err)
		for _, h := range m.(*routev3.RouteConfiguration).GetVirtualHosts() {
			for _, route := range h.GetRoutes() {
				if cluster := route.GetRoute().GetCluster(); cluster != "" {
					out = append(out, cluster)
				}
			}
		}
	}
	return out
}

// checkReferences checks that the router has the cluster of the batch if a route leads
// to it.
func (w *town) checkReferences(when string) {
	w.t.Helper()
	cluster := "outbound|80|v2|" + neighbour + ".example.com"
	if slices.Contains(w.referred(), cluster) && !w.clients["router"].State().Has(envoy.ClusterType, cluster) {
		w.t.Errorf("%s: a route to %s, which the router does not have", when, cluster)
	}
}
