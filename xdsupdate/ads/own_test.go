// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const runtimeType = "type.googleapis.com/envoy.service.runtime.v3.Runtime"

// ownCluster is a cluster whose connect timeout is its state.
func ownCluster(name string, seconds int) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(time.Duration(seconds) * time.Second)}
}

func (f *fixture) setResource(name string, m proto.Message) {
	f.t.Helper()
	if err := f.SetResource(name, m); err != nil {
		f.t.Fatal(err)
	}
}

// ownTimeoutOf returns the state of an own cluster of a client, or 0 if it has none.
func ownTimeoutOf(f *fixture, c *xdstest.Client, name string) int {
	f.t.Helper()
	r, ok := c.State().Resources(envoy.ClusterType)[name]
	if !ok {
		return 0
	}
	m, err := r.Message()
	if err != nil {
		f.t.Fatal(err)
	}
	return int(m.(*clusterv3.Cluster).GetConnectTimeout().AsDuration() / time.Second)
}

// TestOwnResources: resources of the program reach their subscribers, by name or by a wildcard,
// from a server without a registry; other clients get no response.
func TestOwnResources(t *testing.T) {
	for protocol, delta := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serveDiscovery(t, ads.Options{}, nil)
				f.setResource("a", ownCluster("a", 1))
				f.setResource("layer", &runtimev3.Runtime{Name: "layer"})
				all, one, other := f.client(xdstest.ClientOptions{Delta: delta}), f.client(xdstest.ClientOptions{Delta: delta}),
					f.client(xdstest.ClientOptions{Delta: delta})
				f.subscribe(all, envoy.ClusterType)
				f.subscribe(one, envoy.ClusterType, "b")
				f.subscribe(other, runtimeType, "layer")
				f.await(all, envoy.ClusterType, "a")
				f.await(other, runtimeType, "layer")
				had := len(other.Responses())

				f.setResource("b", ownCluster("b", 1))
				f.await(all, envoy.ClusterType, "a", "b")
				f.await(one, envoy.ClusterType, "b")
				f.setResource("b", ownCluster("b", 2))
				f.flush()
				f.waitApplied()
				check(t, "the changed cluster", []int{ownTimeoutOf(f, all, "b"), ownTimeoutOf(f, one, "b"), ownTimeoutOf(f, all, "a")}, []int{2, 2, 1})

				sent := len(all.Responses())
				f.setResource("b", ownCluster("b", 2)) // equal
				f.DeleteResource(envoy.ClusterType, "nothing")
				f.DeleteResource(envoy.ListenerType, "nothing")
				f.flush()
				f.waitApplied()
				check(t, "sent for equal content", received(all, sent), []string{})

				f.DeleteResource(envoy.ClusterType, "b")
				f.await(all, envoy.ClusterType, "a")
				f.waitApplied()
				check(t, "sent to others", received(other, had), []string{})
			})
		})
	}
}

// TestEmptyFirstRequest: an Envoy subscribes to all scoped routes and to all virtual hosts by an empty request; an
// empty request for routes is a subscription to nothing.
func TestEmptyFirstRequest(t *testing.T) {
	for protocol, delta := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serveDiscovery(t, ads.Options{}, nil)
				f.setResource("scope", &routev3.ScopedRouteConfiguration{
					Name: "scope", RouteConfigurationName: "routes", Key: &routev3.ScopedRouteConfiguration_Key{
						Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{{Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{}}},
					},
				})
				f.setResource("routes/shop", &routev3.VirtualHost{Name: "routes/shop", Domains: []string{"shop"}})
				f.setResource("routes", &routev3.RouteConfiguration{Name: "routes"})
				f.flush()
				for typeURL, want := range map[string][]string{
					"type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration": {"scope"},
					"type.googleapis.com/envoy.config.route.v3.VirtualHost":              {"routes/shop"},
					envoy.RouteType: nil,
				} {
					c := f.client(xdstest.ClientOptions{Delta: delta})
					if err := c.Ack(xdstest.Response{TypeURL: typeURL}); err != nil {
						t.Fatal(err)
					}
					f.waitApplied()
					var got []string
					for _, r := range c.Responses() {
						got = append(got, r.Names()...)
					}
					check(t, typeURL, got, want)
				}
			})
		})
	}
}

// TestUnknownVirtualHost: an Envoy that asks for a virtual host that does not exist gets a resource without
// content each time, because it holds back a request meanwhile; one that has gone is removed.
func TestUnknownVirtualHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const typeURL = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
		f := serveDiscovery(t, ads.Options{}, nil)
		f.setResource("r/a", &routev3.VirtualHost{Name: "r/a", Domains: []string{"a"}})
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Answer: func(xdstest.Response) error { return nil }})
		next := func(what string, names, removed []string) {
			t.Helper()
			r, err := c.Next(f.context())
			if err != nil {
				t.Fatal(err)
			}
			check(t, what, r.Names(), names)
			check(t, what+": removed", r.Removed, removed)
			for _, res := range r.Resources {
				check(t, what+": content of "+res.Name, res.Any != nil, res.Name == "r/a")
			}
		}
		f.subscribe(c, typeURL, "r/a", "r/none")
		next("the known one first", []string{"r/a"}, nil)
		next("then the other", []string{"r/none"}, nil)
		for range 2 {
			f.subscribe(c, typeURL, "r/none")
			next("again", []string{"r/none"}, nil)
		}
		f.DeleteResource(typeURL, "r/a")
		next("gone", []string{}, []string{"r/a"})
	})
}

// TestOwnResourceInPlaceOfBuiltIn: the resource replaces the built-in one, which is visible again
// afterwards.
func TestOwnResourceInPlaceOfBuiltIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"))
		c := f.client(xdstest.ClientOptions{Node: node("x", "shop"), Delta: true})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		f.setResource(cluster("a"), ownCluster(cluster("a"), 77))
		f.flush()
		f.waitApplied()
		check(t, "in place", ownTimeoutOf(f, c, cluster("a")), 77)
		f.services.set()
		f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
		f.flush()
		f.waitApplied()
		check(t, "without the service", ownTimeoutOf(f, c, cluster("a")), 77)
		f.services.set(service("a", "shop"))
		f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
		f.DeleteResource(envoy.ClusterType, cluster("a"))
		f.flush()
		f.waitApplied()
		if got := ownTimeoutOf(f, c, cluster("a")); got == 77 || got == 0 {
			t.Errorf("a timeout of %d s after the deletion, want the built-in one", got)
		}
	})
}

// TestOwnResourceThatIsRefused names the resource and says why, and the last good state
// stays.
func TestOwnResourceThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serveDiscovery(t, ads.Options{}, nil)
		c := f.client(xdstest.ClientOptions{Delta: true})
		f.subscribe(c, envoy.ClusterType)
		f.setResource("a", ownCluster("a", 3))
		for what, test := range map[string]struct {
			name    string
			message proto.Message
			want    string
		}{
			"nil":            {"a", nil, `"a": the message is nil`},
			"a nil pointer":  {"a", (*clusterv3.Cluster)(nil), `the name in the message is ""`},
			"without a name": {"", &clusterv3.Cluster{}, "without a name"},
			"another name":   {"a", ownCluster("b", 1), `Cluster a: the name in the message is "b"`},
			"not valid": {"a", &clusterv3.Cluster{
				Name: "a", ConnectTimeout: durationpb.New(0), PerConnectionBufferLimitBytes: wrapperspb.UInt32(1),
			}, "ConnectTimeout"},
			"not UTF-8": {"a\xff", ownCluster("a\xff", 1), "UTF-8"},
		} {
			if err := f.SetResource(test.name, test.message); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error %v, want one with %q", what, err, test.want)
			}
		}
		f.flush()
		f.await(c, envoy.ClusterType, "a")
		check(t, "the last good state", ownTimeoutOf(f, c, "a"), 3)
	})
}

// TestOwnResourcesOfABatch: no push has some of them only.
func TestOwnResourcesOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serveDiscovery(t, ads.Options{}, nil)
		c := f.client(xdstest.ClientOptions{Delta: true})
		f.subscribe(c, envoy.ClusterType)
		synctest.Wait()
		f.together(func() {
			for _, name := range []string{"a", "b", "c"} {
				f.setResource(name, ownCluster(name, 1))
				time.Sleep(time.Second)
			}
		})
		f.await(c, envoy.ClusterType, "a", "b", "c")
		for _, r := range c.Responses() {
			if n := len(r.Names()); n != 0 && n != 3 {
				t.Errorf("a response has %q", r.Names())
			}
		}
	})
}

// TestModelOfOwnResources: random changes, together with services that come and go; all clients,
// running and new, have the present resources.
func TestModelOfOwnResources(t *testing.T) {
	for protocol, delta := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(9, 9))
				f := serve(t, ads.Options{})
				own, services := map[string]int{}, map[string]bool{}
				running := f.client(xdstest.ClientOptions{Node: node("x", "shop"), Delta: delta})
				f.subscribe(running, envoy.ClusterType)
				for step := range 60 {
					for range random.IntN(4) {
						host := fmt.Sprint("h", random.IntN(5))
						switch name := cluster(host); random.IntN(4) {
						case 0:
							delete(own, name)
							f.DeleteResource(envoy.ClusterType, name)
						case 1:
							services[host] = !services[host]
							var list []*registry.Service
							for host, is := range services {
								if is {
									list = append(list, service(host, "shop"))
								}
							}
							slices.SortFunc(list, registry.CompareServices)
							f.services.set(list...)
							f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
						default:
							own[name] = 100 + random.IntN(3)
							f.setResource(name, ownCluster(name, own[name]))
						}
					}
					f.flush()
					f.waitApplied()
					fresh := f.client(xdstest.ClientOptions{Node: node("x", "shop"), Delta: delta})
					f.subscribe(fresh, envoy.ClusterType)
					synctest.Wait()
					f.waitApplied()
					for i := range 5 {
						host := fmt.Sprint("h", i)
						name := cluster(host)
						for which, c := range map[string]*xdstest.Client{"running": running, "new": fresh} {
							got, want := ownTimeoutOf(f, c, name), own[name]
							if (want != 0 || !services[host]) && got != want || want == 0 && services[host] && (got == 0 || got >= 100) {
								t.Fatalf("step %d, the %s client: %s has %d, own %d, service %v", step, which, name, got, want, services[host])
							}
						}
					}
					fresh.Close()
				}
			})
		})
	}
}
