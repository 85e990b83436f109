// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// grpcNode is node for a gRPC client.
func grpcNode(name, namespace string) *core.Node {
	n := node(name, namespace)
	n.UserAgentName = "gRPC Node Pure JS"
	return n
}

// followAll subscribes to everything of host a, and waits for it.
func (f *fixture) followAll(c *xdstest.Client) {
	f.t.Helper()
	for typeURL, name := range map[string]string{
		envoy.ListenerType: "a:80", envoy.RouteType: cluster("a"), envoy.ClusterType: cluster("a"), envoy.LoadAssignmentType: cluster("a"),
	} {
		f.subscribe(c, typeURL, name)
		f.await(c, typeURL, name)
	}
	f.waitApplied()
}

// TestGRPCClientsKeepWhatGoes checks the responses to a gRPC client when a service is removed, or
// is hidden, and comes back.
func TestGRPCClientsKeepWhatGoes(t *testing.T) {
	shown := service("a", "shop")
	for what, gone := range map[string][]*registry.Service{
		"removed": nil,
		"hidden":  {service("a", "shop", exportTo(registry.VisibilityNone))},
		"hidden and changed": {service("a", "shop", exportTo(registry.VisibilityNone), func(s *registry.Service) {
			s.ServiceAccounts = []string{"spiffe://secret"}
		})},
	} {
		for name, delta := range protocols() {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := serve(t, ads.Options{}, shown)
					f.eds("a", "shop", endpoint("10.0.0.1", 80))
					f.flush()
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: grpcNode("a", "shop")})
					f.followAll(c)
					since := len(c.Responses())
					f.define([]string{"a"}, gone...)
					f.eds("a", "shop", endpoint("10.0.0.9", 80)) // the change is not visible
					f.waitApplied()
					check(t, "when it goes", received(c, since), []string{"EDS " + cluster("a")})
					check(t, "addresses", len(addressesOf(t, c, "a")), 0)

					other := f.client(xdstest.ClientOptions{Delta: delta, Node: grpcNode("b", "shop")})
					for typeURL, name := range map[string]string{
						envoy.ListenerType: "a:80", envoy.RouteType: cluster("a"), envoy.ClusterType: cluster("a"), envoy.LoadAssignmentType: cluster("a"),
					} {
						f.subscribe(other, typeURL, name)
					}
					f.define([]string{"b"}, append(gone, service("b", "shop"))...)
					f.subscribe(other, envoy.ListenerType, "b:80") // the answer to this comes after all others
					f.await(other, envoy.ListenerType, "b:80")
					for _, r := range other.Responses() {
						if names := r.Names(); len(names) > 0 && names[0] != "b:80" {
							t.Errorf("a client that comes later is sent %s %q", r.TypeURL, r.Names())
						}
					}

					since = len(c.Responses())
					f.eds("a", "shop", endpoint("10.0.0.1", 80))
					f.define([]string{"a", "b"}, shown)
					f.waitApplied()
					check(t, "when it returns", received(c, since), []string{"EDS " + cluster("a")})
					check(t, "addresses", addressesOf(t, c, "a"), []string{"10.0.0.1"})
					for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType, envoy.ClusterType} {
						if len(c.State().Names(typeURL)) != 1 {
							t.Errorf("%s: the client has %q", typeURL, c.State().Names(typeURL))
						}
					}
					f.await(other, envoy.ListenerType, "a:80", "b:80") // it keeps b
				})
			})
		}
	}
}

// TestServiceGoesBeforeTheFirstAnswer: a client that subscribes to an existing cluster and to a
// missing one gets two responses. A resource that is removed between them is kept like any other.
func TestServiceGoesBeforeTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown := service("a", "shop")
		f := serve(t, ads.Options{}, shown)
		f.flush()
		arrived, answer := make(chan struct{}, 10), make(chan struct{})
		c := f.client(xdstest.ClientOptions{Delta: true, Node: grpcNode("a", "shop"), Answer: func(xdstest.Response) error {
			arrived <- struct{}{}
			<-answer
			return nil
		}})
		f.subscribe(c, envoy.ClusterType, cluster("a"), cluster("none"))
		<-arrived
		f.define([]string{"a"})
		f.flush()
		close(answer)
		f.waitApplied()
		f.define([]string{"a"}, shown)
		f.waitApplied()
		check(t, "clusters", c.State().Names(envoy.ClusterType), []string{cluster("a")})
	})
}

// TestGRPCClientRecovers with calls: a service goes, calls fail, it returns, calls
// succeed.
func TestGRPCClientRecovers(t *testing.T) {
	one := startBackend(t, "one")
	f := serve(t, ads.Options{}, service("a", "shop"))
	f.eds("a", "shop", one)
	client := f.xdsClient("xds:///a:80", "n1")
	callUntil(f.context(), t, client, "one")
	for _, gone := range [][]*registry.Service{nil, {service("a", "shop", exportTo(registry.VisibilityNone))}} {
		f.define([]string{"a"}, gone...)
		f.waitApplied()
		for ctx := f.context(); ; {
			_, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
			if status.Code(err) == codes.Unavailable {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("calls do not fail: %v", err)
			}
		}
		f.define([]string{"a"}, service("a", "shop"))
		callUntil(f.context(), t, client, "one")
	}
}

// TestAssignmentOfAClusterThatChangedAndWent: a SotW client that stays subscribed to the assignment
// of a removed cluster ends with an empty one, whatever kind the cluster had at last.
func TestAssignmentOfAClusterThatChangedAndWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := func(s *registry.Service) { s.Resolution = registry.DNSLB }
		f := serve(t, ads.Options{}, service("a", "shop"))
		f.eds("a", "shop", endpoint("10.0.0.1", 80))
		f.flush()
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
		f.await(c, envoy.ClusterType, cluster("a"))
		f.await(c, envoy.LoadAssignmentType, cluster("a"))
		f.waitApplied()
		f.define([]string{"a"}, service("a", "shop", dns))
		f.waitApplied()
		check(t, "as DNS", addressesOf(t, c, "a"), []string{"10.0.0.1"})
		f.define([]string{"a"})
		f.waitApplied()
		check(t, "deleted", len(addressesOf(t, c, "a")), 0)
		since := len(c.Responses())
		f.define([]string{"a"}, service("a", "shop"))
		f.waitApplied()
		if got := strings.Join(received(c, since), " "); !strings.Contains(got, "EDS "+cluster("a")) {
			t.Errorf("a cluster that comes back has no assignment: %s", got)
		}
		check(t, "back", addressesOf(t, c, "a"), []string{"10.0.0.1"})
	})
}

// TestLegacyWildcardEnds: a wildcard that an empty request began ends when "*" is
// unsubscribed.
func TestLegacyWildcardEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		if err := c.Unsubscribe(envoy.ClusterType, "*"); err != nil {
			t.Fatal(err)
		}
		f.subscribe(c, envoy.RouteType, cluster("a")) // the answer to this comes after all others
		if err := c.Await(f.context(), func(s xdstest.State) bool { return s.Has(envoy.RouteType, cluster("a")) }); err != nil {
			t.Fatal(err)
		}
		f.waitApplied()
		since := len(c.Responses())
		f.define([]string{"b"}, service("a", "shop"), service("b", "shop"))
		f.waitApplied()
		check(t, "after the end", received(c, since), []string{})
		if got := f.Proxies()[0].Types[envoy.ClusterType]; got.Wildcard {
			t.Errorf("status = %+v", got)
		}
	})
}

// TestGRPCClientComesBackWhileAServiceIsMissing: on a new stream, a gRPC client gets resources of a
// removed or hidden service that are made of its name alone, for every kind of service, and a
// client without resources gets none.
func TestGRPCClientComesBackWhileAServiceIsMissing(t *testing.T) {
	shown := service("a", "shop")
	secret := func(s *registry.Service) { s.ServiceAccounts = []string{"spiffe://secret"} }
	var first map[string]xdstest.Resource
	for what, gone := range map[string][]*registry.Service{
		"removed": nil,
		"hidden":  {service("a", "shop", exportTo(registry.VisibilityNone), secret)},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, shown, service("b", "shop"))
				f.eds("a", "shop", endpoint("10.0.0.1", 80))
				f.flush()
				c := f.client(xdstest.ClientOptions{Node: grpcNode("a", "shop")})
				f.followAll(c)
				c.Close()
				f.left()
				f.define([]string{"a"}, append(gone, service("b", "shop"))...)
				f.flush()
				since := len(c.Responses())
				if err := c.Connect(f.context()); err != nil {
					t.Fatal(err)
				}
				f.subscribe(c, envoy.ListenerType, "b:80")
				f.await(c, envoy.ListenerType, "a:80", "b:80")
				f.waitApplied()
				check(t, "addresses", len(addressesOf(t, c, "a")), 0)
				got := map[string]xdstest.Resource{}
				for _, r := range c.Responses()[since:] {
					for _, resource := range r.Resources {
						got[r.TypeURL+resource.Name] = resource
					}
				}
				delete(got, envoy.ListenerType+"b:80")
				if len(got) != 3 { // a listener, a cluster, an empty assignment
					t.Errorf("sent %d resources: %v", len(got), got)
				}
				if first == nil {
					first = got
				}
				check(t, "what is sent", fmt.Sprint(got), fmt.Sprint(first))

				other := f.client(xdstest.ClientOptions{Node: grpcNode("b", "shop")})
				f.subscribe(other, envoy.ListenerType, "a:80", "b:80")
				f.await(other, envoy.ListenerType, "b:80")

				f.define([]string{"a"}, shown, service("b", "shop"))
				f.eds("a", "shop", endpoint("10.0.0.1", 80))
				f.waitApplied()
				check(t, "addresses", addressesOf(t, c, "a"), []string{"10.0.0.1"})
			})
		})
	}
}

// left waits until the server knows that all clients have left. The test is in a
// bubble.
func (f *fixture) left() {
	f.t.Helper()
	synctest.Wait()
	if left := f.Proxies(); len(left) > 0 {
		f.t.Fatalf("clients are left: %+v", left)
	}
}
