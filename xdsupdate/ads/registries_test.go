// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestRegistriesComeAndGo is wired as in the package comment: a client follows when one of two
// registries of a host is deleted, and when the other is replaced, although the old ones still
// write.
func TestRegistriesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registries := aggregate.NewController(aggregate.Options{})
		f := serveDiscovery(t, ads.Options{}, registries)
		leased := func(r **memory.Registry, cluster registry.ClusterID) func(xdsupdate.XDSUpdater) registry.Instance {
			return func(updater xdsupdate.XDSUpdater) registry.Instance {
				*r = memory.New(memory.Options{Cluster: cluster, Updater: updater})
				return *r
			}
		}
		fill := func(r *memory.Registry, address string, more ...*registry.Service) {
			t.Helper()
			for _, s := range append(more, service("a", "shop")) {
				if err := r.SetService(s); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.SetEndpoints("a", "shop", []*registry.Endpoint{endpoint(address, 80)}); err != nil {
				t.Fatal(err)
			}
		}
		var east, west, next *memory.Registry
		registries.AddRegistry(leased(&east, "east"))
		registries.AddRegistry(leased(&west, "west"))
		fill(east, "10.0.0.1")
		fill(west, "10.0.0.2", service("bare", "shop"))

		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
		f.await(c, envoy.ClusterType, cluster("a"), cluster("bare"))
		f.await(c, envoy.LoadAssignmentType, cluster("a"))
		clusters := func(what string, want ...string) {
			t.Helper()
			f.waitApplied()
			check(t, what, c.State().Names(envoy.ClusterType), want)
		}
		addresses := func(what string, want ...string) {
			t.Helper()
			f.waitApplied()
			check(t, what, addressesOf(t, c, "a"), want)
		}
		addresses("both", "10.0.0.1", "10.0.0.2")

		registries.DeleteRegistry("west", registry.Memory)
		clusters("one deleted", cluster("a"))
		addresses("one deleted", "10.0.0.1")
		fill(west, "10.0.0.9")
		addresses("one deleted, which still writes", "10.0.0.1")

		registries.UpdateRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
			made := leased(&next, "east")(updater)
			fill(next, "10.0.0.3", service("new", "shop"))
			return made
		})
		clusters("the other replaced", cluster("a"), cluster("new"))
		fill(east, "10.0.0.8", service("ghost", "shop"))
		clusters("the other replaced, which still writes", cluster("a"), cluster("new"))
		addresses("the other replaced, which still writes", "10.0.0.3")

		registries.DeleteRegistry("east", registry.Memory)
		clusters("all deleted")
	})
}

// TestServerOfAWrappedAggregate: the server attaches itself to the aggregate that a
// host has given a name.
func TestServerOfAWrappedAggregate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registries := aggregate.NewController()
		f := serveDiscovery(t, ads.Options{}, registry.Simple{Controller: registries, ServiceDiscovery: registries, ProviderID: "all"})
		var r *memory.Registry
		registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
			r = memory.New(memory.Options{Updater: updater})
			return r
		})
		if err := r.SetService(service("a", "shop")); err != nil {
			t.Fatal(err)
		}
		if err := r.SetEndpoints("a", "shop", []*registry.Endpoint{endpoint("10.0.0.1", 80)}); err != nil {
			t.Fatal(err)
		}
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		endpoints := 0
		for range f.EndpointIndex().Service("a", "shop").All() {
			endpoints++
		}
		check(t, "endpoints that the server was called with", endpoints, 1)
	})
}
