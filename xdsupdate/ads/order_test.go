// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

func http(s *registry.Service) {
	s.Ports = []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}}
	s.DefaultAddress = "10.9.9.9"
}

func tcp(s *registry.Service) {
	s.Ports = []*registry.Port{{Name: "tcp", Number: 80, Protocol: registry.ProtocolTCP}}
}

func TestMakeBeforeBreak(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("old", "shop", http))
				e := endpoint("10.0.0.1", 80)
				e.ServicePortName = "http"
				f.eds("old", "shop", e)
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				f.subscribe(c, envoy.LoadAssignmentType, cluster("old"), cluster("new"))
				f.subscribe(c, envoy.RouteType, "80")
				f.await(c, envoy.ClusterType, cluster("old"))
				f.await(c, envoy.LoadAssignmentType, cluster("old"))
				f.await(c, envoy.RouteType, "80")
				f.waitApplied()
				since := len(c.Responses())
				f.define([]string{"old", "new"}, service("new", "shop", http))
				f.waitApplied()
				want := []string{
					"CDS " + cluster("new"), "EDS " + cluster("new"), "RDS 80", "EDS -" + cluster("old"), "CDS -" + cluster("old"),
				}
				if !delta {
					want = []string{
						"CDS " + cluster("new"), "CDS " + cluster("old"), // both, while routes point to the old one
						"EDS " + cluster("new"), "RDS 80",
						"EDS " + cluster("old"), // empty now
						"CDS " + cluster("new"),
					}
				}
				got := received(c, since)
				if i := slices.Index(got, "RDS 80"); i < 0 || slices.Index(got, want[0]) > i {
					t.Errorf("routes do not come after clusters: %q", got)
				}
				// Removals may come in either order, but after the rest.
				slices.Sort(got[3:])
				slices.Sort(want[3:])
				check(t, "responses", got, want)
			})
		})
	}
}

func TestHTTPRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop", http))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.RouteType, "80", "81")
		f.await(c, envoy.RouteType, "80")
		f.waitApplied()
		since := len(c.Responses())
		f.define([]string{"b"}, service("a", "shop", http), service("b", "shop", http), service("c", "other", http, exportTo(".")))
		f.eds("a", "shop", endpoint("10.0.0.1", 80))
		f.waitApplied()
		check(t, "responses", received(c, since), []string{"RDS 80"})
		f.define([]string{"a", "b"}, service("b", "shop", func(s *registry.Service) { http(s); s.Ports[0].Number = 81 }))
		f.await(c, envoy.RouteType, "81")
	})
}

// TestOrderWaitsForAnswers: a response that waits for the client's answer holds back the responses
// that must follow it.
func TestOrderWaitsForAnswers(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("a", "shop", http))
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Manual: true})
				next := func(want string) xdstest.Response {
					t.Helper()
					r, err := c.Next(f.context())
					if err != nil {
						t.Fatalf("%s: %v", want, err)
					}
					if got := short(r.TypeURL); got != want {
						t.Fatalf("got %s %q -%q, want %s", got, r.Names(), r.Removed, want)
					}
					return r
				}
				ack := func(r xdstest.Response) {
					t.Helper()
					if err := c.Ack(r); err != nil {
						t.Fatal(err)
					}
				}
				f.subscribe(c, envoy.ClusterType)
				ack(next("CDS"))
				f.subscribe(c, envoy.RouteType, "80")
				ack(next("RDS"))
				f.define([]string{"b"}, service("a", "shop", http), service("b", "shop", http))
				f.flush()
				ack(next("CDS"))
				routes := next("RDS")

				// A cluster that is removed and comes back while its removal waits stays.
				f.define([]string{"a"}, service("b", "shop", http))
				f.flush()
				f.define([]string{"a"}, service("a", "shop", http), service("b", "shop", http))
				f.flush()
				ack(routes)
				f.define([]string{"g"}, service("a", "shop", http), service("b", "shop", http), service("g", "shop", tcp))
				f.flush()
				f.subscribe(c, envoy.ListenerType, "g:80") // the answer to this comes after all others
				ack(next("CDS"))
				ack(next("LDS"))

				f.define([]string{"b"}, service("a", "shop", http), service("g", "shop", tcp))
				f.flush()
				ack(next("RDS"))
				last := next("CDS")
				ack(last)
				f.define([]string{"b"}, service("a", "shop", http), service("b", "shop", http), service("g", "shop", tcp))
				f.flush()
				ack(next("CDS"))
				routes = next("RDS")
				f.define([]string{"a"}, service("b", "shop", http), service("g", "shop", tcp))
				f.flush()
				ack(routes)
				routes = next("RDS")
				last = next("CDS")
				if delta {
					check(t, "removed", last.Removed, []string{cluster("a")})
				} else {
					check(t, "clusters", last.Names(), []string{cluster("b"), cluster("g")})
				}
				ack(routes)
				ack(last)
			})
		})
	}
}
