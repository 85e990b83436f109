// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

func TestOnlyWhatChangedIsSent(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var list []*registry.Service
				var names []string
				for i := range 5 {
					host := fmt.Sprintf("s%d", i)
					list = append(list, service(host, "shop"))
					names = append(names, cluster(host))
				}
				f := serve(t, ads.Options{}, list...)
				for i := range 5 {
					f.eds(fmt.Sprintf("s%d", i), "shop", endpoint("10.0.0.1", 80))
				}
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				f.await(c, envoy.ClusterType, names...)
				f.subscribe(c, envoy.LoadAssignmentType, names...)
				f.await(c, envoy.LoadAssignmentType, names...)
				f.waitApplied()

				since := len(c.Responses())
				f.eds("s3", "shop", endpoint("10.0.0.2", 80))
				f.waitApplied()
				check(t, "an endpoint changed", received(c, since), []string{"EDS " + names[3]})

				since = len(c.Responses())
				f.eds("s3", "shop", endpoint("10.0.0.2", 80))
				f.define([]string{"s1"}, list...)
				f.waitApplied()
				check(t, "nothing changed", received(c, since), []string{})

				since = len(c.Responses())
				list[1] = service("s1", "shop", func(s *registry.Service) { s.ServiceAccounts = []string{"spiffe://a/b"} })
				f.define([]string{"s1"}, list...)
				f.waitApplied()
				want := []string{"CDS " + names[1], "EDS " + names[1]}
				if !delta {
					want = nil
					for _, name := range names {
						want = append(want, "CDS "+name)
					}
					want = append(want, "EDS "+names[1])
				}
				check(t, "a cluster changed", received(c, since), want)
			})
		})
	}
}

func TestReconnect(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := service("a", "shop"), service("b", "shop")
				f := serve(t, ads.Options{}, a, b)
				f.eds("a", "shop", endpoint("10.0.0.1", 80))
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				f.await(c, envoy.ClusterType, cluster("a"), cluster("b"))
				f.subscribe(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
				f.await(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
				f.waitApplied()
				before := c.Responses()

				reconnect := func() []xdstest.Response {
					t.Helper()
					since := len(c.Responses())
					if err := c.Connect(f.context()); err != nil {
						t.Fatal(err)
					}
					// The answer to this comes after all others.
					f.subscribe(c, envoy.RouteType, cluster("a"))
					if err := c.Await(f.context(), func(s xdstest.State) bool {
						return s.Has(envoy.RouteType, cluster("a"))
					}); err != nil {
						t.Fatal(err)
					}
					f.waitApplied()
					if err := c.Unsubscribe(envoy.RouteType, cluster("a")); err != nil {
						t.Fatal(err)
					}
					var out []xdstest.Response
					for _, r := range c.Responses()[since:] {
						if r.TypeURL != envoy.RouteType {
							out = append(out, r)
						}
					}
					return out
				}

				again := reconnect()
				if delta {
					wildcardAnswer := 0
					for _, r := range again {
						if len(r.Resources)+len(r.Removed) > 0 {
							t.Errorf("sent again: %s %q, removed %q", r.TypeURL, r.Names(), r.Removed)
						}
						wildcardAnswer++
					}
					if wildcardAnswer > 1 {
						t.Errorf("%d empty responses", wildcardAnswer)
					}
				} else {
					versions := func(list []xdstest.Response) map[string]string {
						out := make(map[string]string)
						for _, r := range list {
							out[r.TypeURL] = r.Version
						}
						return out
					}
					check(t, "versions", versions(again), versions(before))
				}

				c.Close()
				f.eds("a", "shop", endpoint("10.0.0.2", 80))
				f.define([]string{"b"}, a)
				f.flush()
				reconnect()
				if got := c.State().Names(envoy.ClusterType); !cmp.Equal(got, []string{cluster("a")}) {
					t.Errorf("clusters = %q, want only a", got)
				}
				f.await(c, envoy.ClusterType, cluster("a"))
				if got := addressesOf(t, c, "a"); !cmp.Equal(got, []string{"10.0.0.2"}) {
					t.Errorf("addresses = %q", got)
				}
			})
		})
	}
}

func TestRefusedIsNotSentAgain(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("a", "shop"), service("b", "shop"))
				f.eds("a", "shop", endpoint("10.0.0.1", 80))
				f.flush()
				bad := func(r xdstest.Response) error {
					for _, res := range r.Resources {
						m, err := res.Message()
						if err != nil {
							return err
						}
						cla := m.(*endpointv3.ClusterLoadAssignment)
						for _, l := range cla.GetEndpoints() {
							if l.GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().GetAddress() == "10.6.6.6" {
								return errors.New("do not like 10.6.6.6")
							}
						}
					}
					return nil
				}
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Answer: bad})
				f.subscribe(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
				f.await(c, envoy.LoadAssignmentType, cluster("a"), cluster("b"))
				f.waitApplied()
				since := len(c.Responses())

				f.eds("a", "shop", endpoint("10.6.6.6", 80))
				err := f.WaitApplied(f.context(), nil)
				if !errors.Is(err, ads.ErrRejected) {
					t.Errorf("WaitApplied = %v, want ErrRejected", err)
				}
				status := f.Proxies()[0].Types[envoy.LoadAssignmentType]
				faults, _ := f.Faults()
				if len(faults) != 1 || faults[0].Text != "do not like 10.6.6.6" || faults[0].Version != status.Sent || faults[0].Status != ads.FaultRejected ||
					status.Acked == status.Sent || status.Rejections != 1 {
					t.Errorf("status = %+v, faults are %+v", status, faults)
				}
				f.eds("b", "shop", endpoint("10.0.0.9", 80)) // another resource is still sent
				f.waitApplied()
				check(t, "received", received(c, since), []string{"EDS " + cluster("a"), "EDS " + cluster("b")})
				if status := f.Proxies()[0].Types[envoy.LoadAssignmentType]; status.Rejections != 1 || status.Acked != status.Sent {
					t.Errorf("status = %+v, want the refusal, which is not of what was accepted", status)
				}
				check(t, "the last good stays", addressesOf(t, c, "a"), []string{"10.0.0.1"})
				f.eds("a", "shop", endpoint("10.0.0.3", 80))
				f.waitApplied()
				check(t, "fixed", addressesOf(t, c, "a"), []string{"10.0.0.3"})
				if err := f.WaitApplied(f.context(), nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAnswerComesWhenTheResourceAppears(t *testing.T) {
	for typeURL, name := range map[string]string{
		envoy.ClusterType: cluster("late"), envoy.LoadAssignmentType: cluster("late"),
		envoy.ListenerType: "late:80", envoy.RouteType: cluster("late"),
	} {
		t.Run(short(typeURL), func(t *testing.T) {
			for protocol, delta := range protocols() {
				t.Run(protocol, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := serve(t, ads.Options{}, service("early", "shop"))
						f.flush()
						c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
						f.subscribe(c, typeURL, name)
						before := []string{}
						if delta {
							before = append(before, short(typeURL)+" -"+name)
							if _, err := c.Next(f.context()); err != nil {
								t.Fatal(err)
							}
						}
						f.subscribe(c, envoy.RouteType, cluster("early")) // a barrier
						if err := c.Await(f.context(), func(s xdstest.State) bool { return s.Has(envoy.RouteType, cluster("early")) }); err != nil {
							t.Fatal(err)
						}
						check(t, "before", received(c, 0), append(before, "RDS "+cluster("early")))
						f.define([]string{"late"}, service("early", "shop"), service("late", "shop"))
						if err := c.Await(f.context(), func(s xdstest.State) bool { return s.Has(typeURL, name) }); err != nil {
							t.Fatal(err)
						}
					})
				})
			}
		})
	}
}

// TestEverythingOfAList: a push of everything compares the services of a discovery without snapshots
// with what clients have, so that it finds a removal although no push has named the service.
func TestEverythingOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{})
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.define([]string{"a"}, service("a", "shop"))
		f.await(c, envoy.ClusterType, cluster("a"))
		for _, list := range [][]*registry.Service{{}, {service("a", "shop"), service("b", "shop")}, {service("b", "shop")}} {
			f.services.set(list...)
			f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
			var want []string
			for _, svc := range list {
				want = append(want, cluster(string(svc.Hostname)))
			}
			f.await(c, envoy.ClusterType, want...)
		}
	})
}

func TestVisibility(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				public := service("public", "other")
				private := service("private", "other", exportTo(registry.VisibilityPrivate))
				named := service("named", "other", exportTo("shop"))
				hidden := service("hidden", "shop", exportTo(registry.VisibilityNone))
				f := serve(t, ads.Options{}, public, private, named, hidden)
				f.flush()
				hosts := []string{"hidden", "named", "private", "public"}
				visible := map[string][]string{"shop": {"named", "public"}, "other": {"private", "public"}, "third": {"public"}}
				var clients []*xdstest.Client
				for namespace, want := range visible {
					c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", namespace)})
					clients = append(clients, c)
					f.subscribe(c, envoy.ClusterType)
					var all, listeners, wantNames, wantListeners []string
					for _, h := range hosts {
						all, listeners = append(all, cluster(h)), append(listeners, h+":80")
					}
					for _, h := range want {
						wantNames, wantListeners = append(wantNames, cluster(h)), append(wantListeners, h+":80")
					}
					f.subscribe(c, envoy.LoadAssignmentType, all...)
					f.subscribe(c, envoy.RouteType, all...)
					f.subscribe(c, envoy.ListenerType, listeners...)
					f.await(c, envoy.ClusterType, wantNames...)
					f.await(c, envoy.LoadAssignmentType, wantNames...)
					f.await(c, envoy.RouteType, wantNames...)
					f.await(c, envoy.ListenerType, wantListeners...)
				}

				// Changes of hidden services reach no other client either.
				f.waitApplied()
				counts := map[*xdstest.Client]int{}
				for _, c := range clients {
					counts[c] = len(c.Responses())
				}
				f.eds("hidden", "shop", endpoint("10.0.0.1", 80))
				f.waitApplied()
				for _, c := range clients {
					check(t, "hidden endpoint", received(c, counts[c]), []string{})
				}

				// Services that become invisible are removed.
				f.define([]string{"public"}, service("public", "other", exportTo("third")), private, named, hidden)
				f.waitApplied()
				got := map[string]int{}
				for _, c := range clients {
					for _, name := range c.State().Names(envoy.ClusterType) {
						got[name]++
					}
				}
				check(t, "clusters", got, map[string]int{cluster("named"): 1, cluster("private"): 1, cluster("public"): 1})
			})
		})
	}
}

func TestOwnNamespaceFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := service("a", "old")
		oldest := service("a", "private", exportTo(registry.VisibilityPrivate), func(s *registry.Service) {
			s.CreationTime = s.CreationTime.Add(-1)
		})
		own := service("a", "shop", func(s *registry.Service) { s.CreationTime = s.CreationTime.Add(1) })
		f := serve(t, ads.Options{}, oldest, old, own)
		f.eds("a", "private", endpoint("10.0.0.3", 80))
		f.eds("a", "old", endpoint("10.0.0.1", 80))
		f.eds("a", "shop", endpoint("10.0.0.2", 80))
		f.flush()
		for namespace, want := range map[string]string{"shop": "10.0.0.2", "old": "10.0.0.1", "third": "10.0.0.1", "private": "10.0.0.3"} {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", namespace)})
			f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
			f.await(c, envoy.LoadAssignmentType, cluster("a"))
			check(t, namespace, addressesOf(t, c, "a"), []string{want})
		}
	})
}

func TestEndpointsOfTheOwnClusterOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		restricted := endpoint("10.0.0.2", 80)
		restricted.Shared = &registry.EndpointAttributes{ClusterID: "c2", DiscoverableFromSameCluster: true}
		f := serve(t, ads.Options{}, service("a", "shop"))
		f.eds("a", "shop", endpoint("10.0.0.1", 80), restricted)
		f.flush()
		for clusterID, want := range map[string][]string{"c1": {"10.0.0.1"}, "c2": {"10.0.0.1", "10.0.0.2"}} {
			n := node("a", "shop")
			n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"CLUSTER_ID": structpb.NewStringValue(clusterID)}}
			c := f.client(xdstest.ClientOptions{Delta: true, Node: n})
			f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
			f.await(c, envoy.LoadAssignmentType, cluster("a"))
			check(t, clusterID, addressesOf(t, c, "a"), want)
		}
	})
}
