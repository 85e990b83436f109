// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestDeltaSubscriptions checks the rules of the protocol about repeated subscriptions and names in
// a wildcard subscription.
func TestDeltaSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"), service("b", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		since := 0
		next := func(what string, want ...string) {
			t.Helper()
			// The answer to this comes after all others.
			f.subscribe(c, envoy.RouteType, cluster("a"))
			if err := c.Await(f.context(), func(s xdstest.State) bool { return s.Has(envoy.RouteType, cluster("a")) }); err != nil {
				t.Fatal(err)
			}
			f.waitApplied()
			if err := c.Unsubscribe(envoy.RouteType, cluster("a")); err != nil {
				t.Fatal(err)
			}
			check(t, what, received(c, since), append(append([]string{}, want...), "RDS "+cluster("a")))
			since = len(c.Responses())
		}
		f.subscribe(c, envoy.ClusterType)
		next("wildcard", "CDS "+cluster("a"), "CDS "+cluster("b"))
		f.subscribe(c, envoy.ClusterType, cluster("a"), "gone")
		next("a name that is known, and one that does not exist", "CDS -gone")
		f.subscribe(c, envoy.ClusterType, cluster("a"))
		next("the same name again", "CDS "+cluster("a"))
		if err := c.Unsubscribe(envoy.ClusterType, cluster("a")); err != nil {
			t.Fatal(err)
		}
		next("a name out of a wildcard: it still exists", "CDS "+cluster("a"))
		if err := c.Unsubscribe(envoy.ClusterType, "gone"); err != nil {
			t.Fatal(err)
		}
		next("a name out of a wildcard: it does not exist", "CDS -gone")
		f.subscribe(c, envoy.ClusterType, cluster("b"))
		if err := c.Unsubscribe(envoy.ClusterType, "*"); err != nil {
			t.Fatal(err)
		}
		next("the wildcard is over")
		f.define([]string{"a"}, service("b", "shop"), service("a", "shop", http))
		next("a change of what is not subscribed any more")
		f.define([]string{"a", "b"}, service("a", "shop"))
		f.flush()
		next("the name that is left is gone", "CDS -"+cluster("b"))
		f.subscribe(c, envoy.ClusterType)
		next("everything again", "CDS "+cluster("a"))
	})
}

// TestWarmingAfterReconnect: an Envoy that comes back to changed clusters waits
// for their load assignments, although it has them.
func TestWarmingAfterReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"), service("b", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.subscribe(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
		f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
		f.await(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
		c.Close()
		f.define([]string{"a"}, service("a", "shop", func(s *registry.Service) { s.ServiceAccounts = []string{"spiffe://x"} }), service("b", "shop"))
		f.flush()
		since := len(c.Responses())
		if err := c.Connect(f.context()); err != nil {
			t.Fatal(err)
		}
		for len(c.Responses()) < since+2 {
			if _, err := c.Next(f.context()); err != nil {
				t.Fatal(err)
			}
		}
		f.waitApplied()
		check(t, "responses", received(c, since), []string{"CDS " + cluster("a"), "EDS " + cluster("a")})
	})
}

// TestNothingIsAnAnswer: an Envoy starts only when it was sent its clusters
// and listeners, even if there are none.
func TestNothingIsAnAnswer(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{})
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				for _, typeURL := range []string{envoy.ClusterType, envoy.ListenerType} {
					f.subscribe(c, typeURL)
					r, err := c.Next(f.context())
					if err != nil {
						t.Fatal(err)
					}
					check(t, "response", short(r.TypeURL)+fmt.Sprint(r.Names()), short(typeURL)+"[]")
				}
				f.define([]string{"a"}, service("a", "shop"))
				f.await(c, envoy.ClusterType, cluster("a"))
				f.waitApplied()
				check(t, "responses", received(c, 0), []string{"CDS nothing", "LDS nothing", "CDS " + cluster("a")})
			})
		})
	}
}

// TestWhatDoesNotExist: each client gets the removal of each name that it asks for
// and that does not exist, also if another client asked for some of them before.
func TestWhatDoesNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{})
		subscribe := func(c *xdstest.Client, names ...string) []string {
			f.subscribe(c, envoy.ClusterType, names...)
			r, err := c.Next(f.context())
			if err != nil {
				t.Fatal(err)
			}
			return r.Removed
		}
		first := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		check(t, "removed for the first client", subscribe(first, "a"), []string{"a"})
		check(t, "removed for the first client", subscribe(first, "b"), []string{"b"})
		second := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		check(t, "removed for the second client", subscribe(second, "a", "b"), []string{"a", "b"})
	})
}

// TestAllGoesWhileAway: a client that comes back when all its resources have been removed gets the
// removals, although there is no other resource to send.
func TestAllGoesWhileAway(t *testing.T) {
	for typeURL, resource := range map[string]string{envoy.ClusterType: cluster("a"), envoy.ListenerType: "a:80"} {
		for name, delta := range protocols() {
			t.Run(short(typeURL)+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := serve(t, ads.Options{}, service("a", "shop"), service("b", "shop"))
					f.flush()
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
					f.subscribe(c, typeURL, resource)
					f.await(c, typeURL, resource)
					c.Close()
					f.define([]string{"a"}, service("b", "shop"))
					f.flush()
					if err := c.Connect(f.context()); err != nil {
						t.Fatal(err)
					}
					err := c.Await(f.context(), func(s xdstest.State) bool { return !s.Has(typeURL, resource) })
					if err != nil {
						t.Fatalf("%v: it still has %q", err, c.State().Names(typeURL))
					}
				})
			})
		}
	}
}

// TestClusterChangesItsKind: a SotW client whose cluster has stopped taking its endpoints from an
// assignment keeps the last one, as it may still use it; when the service is removed, its
// assignment is empty.
func TestClusterChangesItsKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"), service("b", "shop"))
		for _, host := range []string{"a", "b"} {
			f.eds(host, "shop", endpoint("10.0.0.1", 80))
		}
		f.flush()
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
		f.subscribe(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
		f.await(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
		f.waitApplied()
		since := len(c.Responses())
		f.define([]string{"a", "b"}, service("a", "shop", func(s *registry.Service) { s.Resolution = registry.DNSLB }))
		f.flush()
		f.waitApplied()
		var assignments []string
		for _, line := range received(c, since) {
			if strings.HasPrefix(line, "EDS") {
				assignments = append(assignments, line)
			}
		}
		check(t, "assignments", assignments, []string{"EDS " + cluster("b")})
		check(t, "addresses of a", addressesOf(t, c, "a"), []string{"10.0.0.1"})
		check(t, "addresses of b", len(addressesOf(t, c, "b")), 0)
	})
}

// TestClusterOfAnotherKindIsHidden: the assignment that a SotW client has kept of a
// cluster that takes its endpoints from elsewhere goes when the cluster is hidden.
func TestClusterOfAnotherKindIsHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hidden atomic.Bool
		f := serve(t, ads.Options{Providers: []ads.Provider{hiding(cluster("a"), &hidden)}}, service("a", "shop"))
		f.eds("a", "shop", endpoint("10.0.0.1", 80))
		f.flush()
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
		f.await(c, envoy.LoadAssignmentType, cluster("a"))
		f.define([]string{"a"}, service("a", "shop", func(s *registry.Service) { s.Resolution = registry.DNSLB }))
		f.waitApplied()
		check(t, "as DNS", addressesOf(t, c, "a"), []string{"10.0.0.1"})
		hidden.Store(true)
		f.other()
		f.await(c, envoy.ClusterType)
		f.waitApplied()
		check(t, "hidden", len(addressesOf(t, c, "a")), 0)
	})
}

// TestVersionsAreOfNamesToo: two resources that exchange their contents are another
// version of the set.
func TestVersionsAreOfNamesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{})
		f.setTexts(map[string]string{"a": "one", "b": "two"})
		c := f.client(xdstest.ClientOptions{
			Delta: true, Node: node("a", "shop"), Answer: func(xdstest.Response) error { return nil },
		})
		f.subscribe(c, customType, "a", "b")
		f.await(c, customType, "a", "b")
		f.waitApplied()
		f.setTexts(map[string]string{"a": "two", "b": "one"})
		f.waitApplied()
		responses := c.Responses()
		check(t, "responses", len(responses), 2)
		if responses[0].Version == responses[1].Version {
			t.Errorf("both versions are %q", responses[0].Version)
		}
	})
}

// TestFirstAnswerIsComplete: a delta client gets a response about every name of its first
// subscription, with existing resources before the others.
func TestFirstAnswerIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType, cluster("a"), "none")
		synctest.Wait()
		f.waitApplied()
		check(t, "responses", received(c, 0), []string{"CDS " + cluster("a"), "CDS -none"})
	})
}
