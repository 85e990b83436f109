// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// resourcesOf returns the server's state of the resources of a type, for a node that has one
// stream.
func (f *fixture) resourcesOf(id, typeURL string) []ads.ProxyResource {
	f.t.Helper()
	all := slices.Collect(f.Resources(func(s ads.Stream) bool { return s.Node == id }))
	if len(all) != 1 {
		f.t.Fatalf("%d streams of %s", len(all), id)
	}
	return slices.DeleteFunc(all[0].Resources, func(r ads.ProxyResource) bool { return r.TypeURL != typeURL })
}

// accepted returns the states that a node has accepted, nil for unknown ones, and checks that the
// fields of each agree.
func (f *fixture) accepted(id, typeURL string) map[string]proto.Message {
	f.t.Helper()
	out := make(map[string]proto.Message)
	for _, r := range f.resourcesOf(id, typeURL) {
		want := ads.StatusSynced
		switch {
		case !r.Sent.Exists():
			want = ads.StatusNotSent
		case r.Error != "":
			want = ads.StatusError
		}
		if same := r.Sent == r.Accepted; r.Status != want || same && want == ads.StatusError || !same && want == ads.StatusSynced {
			f.t.Errorf("%s: %+v", r.Name, r)
		}
		if !r.Accepted.Exists() {
			continue
		}
		if _, err := r.Accepted.Message(); errors.Is(err, ads.ErrNoState) {
			out[r.Name] = nil
			continue
		}
		m, err := r.Accepted.Whole()
		if err != nil {
			f.t.Fatal(err)
		}
		out[r.Name] = m
	}
	return out
}

// knows checks the server's state of a client that has answered everything against the client's
// resources.
func (s *refusalScene) knows() {
	s.t.Helper()
	got := s.accepted(node("a", "shop").GetId(), s.typeURL)
	want := s.client.state(s.typeURL)
	for _, r := range s.resourcesOf(node("a", "shop").GetId(), s.typeURL) {
		if value, has := want[r.Name]; has && r.Status == ads.StatusError && s.typeURL == envoy.LoadAssignmentType {
			// A state that it accepted last preceded a rejected one in a response.
			got[r.Name] = valued(s.typeURL, r.Name, value)
		}
	}
	values := make(map[string]string)
	for name, m := range got {
		values[name] = valueOf(m)
	}
	if !maps.Equal(values, want) {
		s.t.Errorf("what the client has (-want +got):\n%s", cmp.Diff(want, values))
	}
}

// knows checks the server's state of a client that has answered everything against the client's
// resources.
func (s *quarantineScene) knows(j *judge, name string) {
	s.t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	got := make(map[string]map[string]string)
	for name, m := range s.accepted(node(name, "shop").GetId(), s.provider.typeURL) {
		got[name] = valuesOf(m)
	}
	check(s.t, "what "+name+" has", got, j.has)
}

// TestResourcesOfHistories: after a random history the server reports the resources that clients
// have, also for clients that come back and reject some of them.
func TestResourcesOfHistories(t *testing.T) {
	for _, seed := range histories.Seeds(t, 6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{})
				w := newWorld(seed, 3)
				clients := make(map[string]known)
				for i := range 6 {
					o := xdstest.ClientOptions{Delta: i%2 == 0, Node: node(fmt.Sprint("c", i), fmt.Sprintf("n%d", i/2)), Answer: refusesThird}
					if i >= 4 {
						// A response that empties assignments and is rejected because of others is
						// not repeated.
						o.Node.UserAgentName, o.Answer = "gRPC Go", nil
					}
					c := f.client(o)
					f.subscribeAll(c, w.random.Shuffle)
					clients[o.Node.GetId()] = known{c, o.Delta}
				}
				for i := range 150 {
					w.step(f)
					if w.random.IntN(8) == 0 {
						f.waitApplied()
						f.knowsAll(clients)
					}
					if i%40 == 39 {
						ids := slices.Sorted(maps.Keys(clients))
						if err := clients[ids[w.random.IntN(len(ids))]].Connect(f.context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				f.waitApplied()
				f.knowsAll(clients)
			})
		})
	}
}

// known is a client whose protocol is known.
type known struct {
	*xdstest.Client
	delta bool
}

// refusesThird rejects assignments with one address.
func refusesThird(r xdstest.Response) error {
	for _, res := range r.Resources {
		m, err := res.Message()
		if err != nil {
			return err
		}
		a, _ := m.(*endpointv3.ClusterLoadAssignment)
		for _, l := range a.GetEndpoints() {
			if slices.Contains(addressesIn(l), "10.0.0.3") {
				return errors.New("10.0.0.3 is refused")
			}
		}
	}
	return nil
}

// knowsAll checks the state of clients that have answered everything. An assignment that was
// emptied counts as none.
func (f *fixture) knowsAll(clients map[string]known) {
	f.t.Helper()
	synctest.Wait()
	for id, c := range clients {
		if err := c.Err(); err != nil {
			f.t.Fatal(err)
		}
		for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType} {
			want := make(map[string]proto.Message)
			for name, r := range c.State().Resources(typeURL) {
				m, err := r.Message()
				if err != nil {
					f.t.Fatal(err)
				}
				want[name] = m
			}
			got := f.accepted(id, typeURL)
			for name, m := range want {
				if known, has := got[name]; has && known == nil && c.delta { // it came with it
					got[name] = m
				}
				a, isAssignment := m.(*endpointv3.ClusterLoadAssignment)
				if got[name] == nil && (isAssignment && (len(a.GetEndpoints()) == 0 || f.mayBeForgotten(id, c, name)) || cannotBeTaken(c.delta, typeURL)) {
					delete(want, name)
				}
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				f.t.Errorf("%s %s (-client +server):\n%s\n%+v", id, short(typeURL), diff, f.resourcesOf(id, typeURL))
			}
		}
	}
}

// mayBeForgotten reports whether the server may not know an assignment that a client has: one of a cluster
// that has changed is sent again as if the client had none. It keeps that if it rejects the next one, or if the
// cluster goes before it is sent.
func (f *fixture) mayBeForgotten(id string, c known, name string) bool {
	return c.delta && (!c.State().Has(envoy.ClusterType, name) || slices.ContainsFunc(f.resourcesOf(id, envoy.LoadAssignmentType),
		func(r ads.ProxyResource) bool { return r.Name == name && r.Status == ads.StatusError }))
}

// cannotBeTaken reports whether a SotW client that has come back may have resources that were
// removed meanwhile, and that the new stream does not know.
func cannotBeTaken(delta bool, typeURL string) bool {
	return !delta && (typeURL == envoy.LoadAssignmentType || typeURL == envoy.RouteType)
}

// TestResourceStatus checks the meaning of each status.
func TestResourceStatus(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serveDiscovery(t, ads.Options{}, nil)
				set := func(name, value string) {
					if err := f.SetResource(name, &clusterv3.Cluster{Name: name, AltStatName: value}); err != nil {
						t.Fatal(err)
					}
					f.flush()
				}
				set("a", "1")
				m := f.manual(delta)
				f.subscribe(m.Client, envoy.ClusterType, "a", "none")
				says := func(when string, want ...string) {
					t.Helper()
					synctest.Wait()
					got := []string{}
					for _, r := range f.resourcesOf(node("a", "shop").GetId(), envoy.ClusterType) {
						value := func(s ads.StateOfResource) string {
							if !s.Exists() {
								return "-"
							}
							message, err := s.Message()
							if err != nil {
								t.Fatal(err)
							}
							if version, made := s.Version(), s.Made(); version == "" || made.IsZero() || time.Since(made) > time.Minute {
								t.Errorf("%s: version %q, made %v", r.Name, version, made)
							}
							return valueOf(message)
						}
						line := fmt.Sprintf("%s %s sent %s accepted %s", r.Name, r.Status, value(r.Sent), value(r.Accepted))
						if r.Error != "" {
							line += ": " + r.Error
						}
						if r.Pending {
							line += ", pending"
						}
						got = append(got, line)
						if (r.Status == ads.StatusStale || r.Status == ads.StatusError) == r.Since.IsZero() {
							t.Errorf("%s: since %v", line, r.Since)
						}
					}
					check(t, when, got, want)
				}
				answer := func(refusal string) {
					t.Helper()
					m.news()
					waiting := m.waiting
					m.waiting = nil
					for _, r := range waiting {
						err := error(nil)
						if refusal == "" {
							err = m.Ack(r)
						} else {
							err = m.Nack(r, refusal)
						}
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				const none = "none NOT_SENT sent - accepted -"
				says("before an answer", "a STALE sent 1 accepted -", none)
				set("a", "2")
				says("while a newer one waits", "a STALE sent 1 accepted -, pending", none)
				answer("")
				says("when that is sent", "a STALE sent 2 accepted 1", none)
				answer("")
				says("accepted", "a SYNCED sent 2 accepted 2", none)
				answer("") // of delta, that there is none
				set("a", "3")
				answer("no three")
				says("refused", "a ERROR sent 3 accepted 2: no three", none)
				set("a", "4")
				says("a state after one that was refused", "a STALE sent 4 accepted 2: no three", none)
				answer("nor four")
				says("refused again", "a ERROR sent 4 accepted 2: nor four", none)
				set("a", "2")
				answer("")
				says("as before", "a SYNCED sent 2 accepted 2", none)
				set("none", "1")
				answer("")
				says("what was not there", "a SYNCED sent 2 accepted 2", "none SYNCED sent 1 accepted 1")
			})
		})
	}
}

// TestResourcesHaveNoSecrets: secret fields are redacted.
func TestResourcesHaveNoSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serveDiscovery(t, ads.Options{}, nil)
		if err := f.SetResource("s", valued(secretType, "s", "hidden-value")); err != nil {
			t.Fatal(err)
		}
		f.flush()
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop"), Answer: func(xdstest.Response) error { return nil }})
		f.subscribe(c, secretType, "s")
		f.await(c, secretType, "s")
		f.waitApplied()
		for _, r := range f.resourcesOf(node("a", "shop").GetId(), secretType) {
			m, err := r.Sent.Message()
			if err != nil {
				t.Fatal(err)
			}
			check(t, "the secret", valueOf(m), "[redacted]")
			if text := fmt.Sprintf("%v %+v", m, r); strings.Contains(text, "hidden-value") {
				t.Error(text)
			}
		}
	})
}

// TestResourcesWhilePushing asks while clients come and go and things change.
func TestResourcesWhilePushing(t *testing.T) {
	f := serve(t, ads.Options{}, service("a", "shop"))
	f.flush()
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			answered := make(chan struct{}, 1)
			answer := func(r xdstest.Response) error {
				select {
				case answered <- struct{}{}:
				default:
				}
				return refusesThird(r)
			}
			c := f.client(xdstest.ClientOptions{Delta: i%2 == 0, Node: node(fmt.Sprint(i), "shop"), NoHistory: true, Answer: answer})
			for {
				f.subscribe(c, envoy.ClusterType)
				f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
				// A stream that ends before its first request leaves a stream behind that still
				// waits to be served.
				select {
				case <-answered:
				case <-stop:
					return
				}
				if err := c.Connect(f.context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 200 {
		f.eds("a", "shop", endpoint(fmt.Sprint("10.0.0.", i%5), uint32(i+1)))
		for p := range f.Resources(nil) {
			for _, r := range p.Resources {
				for _, s := range []ads.StateOfResource{r.Sent, r.Accepted} {
					if _, err := s.Message(); err != nil && !errors.Is(err, ads.ErrNoState) {
						t.Error(err)
					}
				}
			}
		}
	}
	close(stop)
	running.Wait()
}
