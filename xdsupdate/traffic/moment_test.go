// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestPolicyComesWithItsService: a push that is asked for while a cache hands a commit to
// the policies, then to a handler of the host that takes its time, then to the registry,
// has the route of the commit with its service, and the former one goes after that.
func TestPolicyComesWithItsService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, store: storememory.NewController(storememory.Make(istio.Schemas())), clusterID: "c1"}
		s.policies = traffic.New(s.store, traffic.Options{})
		registries := aggregate.NewController()
		s.kubernetes = registrymemory.New()
		s.server = ads.New(registries, ads.Options{
			Providers: []ads.Provider{s.policies}, Pusher: xdsupdate.PusherOptions{DebounceAfter: -1},
		})
		s.server.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
		s.must(s.server.Flush(t.Context())) // from here on the policies are the first to be told
		s.store.SubscribeBatch([]configstore.GroupVersionKind{istio.ServiceEntry}, func([]configstore.Change) {
			time.Sleep(20 * time.Millisecond)
		})
		registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
			return serviceentry.New(s.store, updater, serviceentry.Options{ClusterID: s.clusterID})
		})
		entry := func(name string) configstore.Config {
			return parseConfig(t, `{kind: ServiceEntry, metadata: {name: `+name+`}, spec: {hosts: [`+name+`.example.com], resolution: STATIC,
				ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.1}]}}`)
		}
		route := func(to string) configstore.Config {
			return parseConfig(t, `{kind: VirtualService, metadata: {name: web}, spec: {hosts: [web.example.com],
				http: [{route: [{destination: {host: `+to+`.example.com}}]}]}}`)
		}
		apply := func(mutations ...configstore.Mutation) {
			t.Helper()
			_, err := s.store.Apply(mutations...)
			s.must(err)
		}
		set := func(c configstore.Config) configstore.Mutation {
			return configstore.Mutation{Op: configstore.OpUpsert, Config: c}
		}
		apply(set(entry("web")), set(entry("old")), set(route("old")))
		s.serve()
		s.applied()
		c := xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: &core.Node{Id: "sidecar~10.1.1.1~a.shop~shop.svc.cluster.local"}})
		s.must(c.Connect(t.Context()))
		defer c.Close()
		s.must(c.Subscribe(envoy.ClusterType))
		s.applied()
		s.must(c.Subscribe(envoy.RouteType, "80"))
		time.Sleep(time.Second)
		s.applied()
		since := len(c.Responses())

		apply(set(entry("new")), set(route("new")), configstore.Mutation{Op: configstore.OpDelete, Config: entry("old")})
		go s.store.Drain()
		time.Sleep(10 * time.Millisecond)
		s.must(s.server.Flush(t.Context()))
		time.Sleep(time.Second)
		s.applied()
		routes := 0
		var clusters []string
		for i, r := range c.Responses() {
			switch {
			case r.TypeURL == envoy.ClusterType:
				clusters = r.Names()
			case i < since || r.TypeURL != envoy.RouteType:
			default:
				routes++
				for _, name := range clustersOf(t, r) {
					if name == envoy.ClusterName(80, "old.example.com") || !slices.Contains(clusters, name) {
						t.Errorf("response %d has a route to %s, and there are the clusters %q", i, name, clusters)
					}
				}
			}
		}
		if routes != 1 {
			t.Errorf("%d responses with routes, want 1", routes)
		}
	})
}

// clustersOf returns the clusters that the routes of a response lead to.
func clustersOf(t *testing.T, r xdstest.Response) (out []string) {
	t.Helper()
	for _, resource := range r.Resources {
		m, err := resource.Message()
		if err != nil {
			t.Fatal(err)
		}
		config, _ := m.(*routev3.RouteConfiguration)
		for _, host := range config.GetVirtualHosts() {
			for _, route := range host.GetRoutes() {
				if name := route.GetRoute().GetCluster(); name != "" && name != "PassthroughCluster" {
					out = append(out, name)
				}
			}
		}
	}
	return out
}
