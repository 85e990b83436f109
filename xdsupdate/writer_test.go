// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

func addresses(list []*registry.Endpoint) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Address())
	}
	return out
}

func wantAddresses(t *testing.T, index *xdsupdate.EndpointIndex, shard xdsupdate.ShardKey, hostname string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, addresses(index.Service(registry.Hostname(hostname), ns).Shard(shard))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", hostname, diff)
	}
}

// sendDelta sends changes by an owner of an updater that takes them.
func sendDelta(u xdsupdate.XDSUpdater, shard xdsupdate.ShardKey, hostname string, changes ...xdsupdate.EndpointChange) {
	u.(xdsupdate.EndpointDeltaUpdater).EDSDeltaUpdate(shard, registry.Hostname(hostname), ns, changes)
}

// callRefused makes each call about a shard that must have no effect.
func callRefused(u xdsupdate.ShardWriter, shard xdsupdate.ShardKey, hostname registry.Hostname) {
	u.EDSUpdate(shard, hostname, ns, eps(ep("6.6.6.6")))
	u.EDSUpdate(shard, hostname, ns, nil)
	u.EDSUpdate(shard, "new", ns, eps(ep("6.6.6.6")))
	u.EDSUpdate(shard, "new", ns, nil)
	u.EDSCacheUpdate(shard, hostname, ns, nil)
	u.EDSDeltaUpdate(shard, hostname, ns, []xdsupdate.EndpointChange{{New: ep("6.6.6.6")}})
	u.SvcUpdate(shard, hostname, ns, registry.EventDelete)
	u.RemoveShard(shard)
	u.Take(shard)
	u.Complete()
}

// skip drops the pushes until then.
func (p *pushes) skip(after time.Duration) {
	time.Sleep(after)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = nil
}

// TestReplacedOwnerWritesNoMore: whatever it still does has no effect, and asks for no
// push.
func TestReplacedOwnerWritesNoMore(t *testing.T) {
	opts := xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{Endpoints: true}}
	inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
		writers, shard := xdsupdate.NewWriters(p), shardOf("c1")
		was := writers.New()
		was.EDSUpdate(shard, host, ns, eps(ep("1.1.1.1")))
		got.expect(time.Second, "100ms full push of ServiceEntry/default/a.example.com (endpoint 1)")
		now := writers.New()
		if diff := cmp.Diff([]xdsupdate.ShardKey{shard}, was.Shards()); diff != "" || now.Shards() != nil {
			got.t.Errorf("shards of the owner (-want +got):\n%s; of one that has none: %v", diff, now.Shards())
		}
		now.Take(shard)
		if diff := cmp.Diff([]xdsupdate.ShardKey{shard}, now.Shards()); diff != "" || was.Shards() != nil {
			got.t.Errorf("shards of the new owner (-want +got):\n%s; of the other: %v", diff, was.Shards())
		}
		callRefused(was, shard, host)
		was.Close()
		callRefused(was, shard, host)
		got.expect(time.Second)
		wantAddresses(got.t, p.Index(), shard, host, "1.1.1.1") // kept until overwritten
		if keys := keysOf(p.Index()); len(keys) != 1 {
			got.t.Errorf("services are %v", keys)
		}
		now.EDSUpdate(shard, host, ns, eps(ep("2.2.2.2")))
		got.expect(time.Second, "2.1s endpoint push of ServiceEntry/default/a.example.com (endpoint 1)")
		wantAddresses(got.t, p.Index(), shard, host, "2.2.2.2")
	})
}

// TestClosedOwner writes no more, and leaves the shard to any other.
func TestClosedOwner(t *testing.T) {
	p, shard := newQuietPusher(), shardOf("c1")
	writers := xdsupdate.NewWriters(p)
	older, closed := writers.New(), writers.New()
	closed.EDSUpdate(shard, host, ns, eps(ep("1.1.1.1")))
	callRefused(older, shard, host)
	wantAddresses(t, p.Index(), shard, host, "1.1.1.1")
	closed.Close()
	closed.Close()
	callRefused(closed, shard, host)
	wantAddresses(t, p.Index(), shard, host, "1.1.1.1")
	older.EDSUpdate(shard, host, ns, eps(ep("2.2.2.2")))
	closed.Close() // takes nothing from the next one
	callRefused(closed, shard, host)
	wantAddresses(t, p.Index(), shard, host, "2.2.2.2")
}

// TestOwnersOfManyShards: each is taken over by itself.
func TestOwnersOfManyShards(t *testing.T) {
	p, a, b := newQuietPusher(), shardOf("a"), shardOf("b")
	writers := xdsupdate.NewWriters(p)
	was := writers.New()
	was.EDSUpdate(b, host, ns, eps(ep("1.1.1.1")))
	was.EDSUpdate(a, host, ns, eps(ep("1.1.1.1")))
	if diff := cmp.Diff([]xdsupdate.ShardKey{a, b}, was.Shards()); diff != "" {
		t.Errorf("shards (-want +got):\n%s", diff)
	}
	now := writers.New()
	now.SvcUpdate(a, "other", ns, registry.EventAdd)
	was.EDSUpdate(a, host, ns, nil)
	was.EDSUpdate(b, host, ns, eps(ep("2.2.2.2")))
	wantAddresses(t, p.Index(), a, host, "1.1.1.1")
	wantAddresses(t, p.Index(), b, host, "2.2.2.2")
	if diff := cmp.Diff([]xdsupdate.ShardKey{b}, was.Shards()); diff != "" {
		t.Errorf("shards that are left (-want +got):\n%s", diff)
	}
}

// TestSameContentFromTheNextOwner is no push.
func TestSameContentFromTheNextOwner(t *testing.T) {
	opts := xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{Endpoints: true}}
	inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
		writers, shard := xdsupdate.NewWriters(p), shardOf("c1")
		list := eps(ep("1.1.1.1", account("a")), ep("2.2.2.2"))
		writers.New().EDSUpdate(shard, "a", ns, list)
		got.expect(time.Second, "100ms full push of ServiceEntry/default/a (endpoint 1)")
		next := writers.New()
		next.EDSUpdate(shard, "a", ns, list)
		next.Complete()
		third, one := writers.New(), ep("2.2.2.2")
		sendDelta(third, shard, "a", xdsupdate.EndpointChange{New: one}, xdsupdate.EndpointChange{New: ep("1.1.1.1", account("a"))})
		got.expect(time.Second)
		wantAddresses(got.t, p.Index(), shard, "a", "1.1.1.1", "2.2.2.2")
		sendDelta(third, shard, "a", xdsupdate.EndpointChange{Old: one})
		got.expect(time.Second, "2.1s endpoint push of ServiceEntry/default/a (endpoint 1)")
		wantAddresses(got.t, p.Index(), shard, "a", "1.1.1.1")
	})
}

// TestFirstDeltaIsTheCompleteList, but nothing is no list.
func TestFirstDeltaIsTheCompleteList(t *testing.T) {
	p, shard := newQuietPusher(), shardOf("c1")
	var recorder xdstest.DeltaRecorder
	writers := xdsupdate.NewWriters(xdsupdate.Multi(p, &recorder))
	was, first := writers.New(), ep("1.1.1.1")
	sendDelta(was, shard, "a", xdsupdate.EndpointChange{New: first}, xdsupdate.EndpointChange{New: ep("2.2.2.2")})
	now, third := writers.New(), ep("3.3.3.3")
	sendDelta(now, shard, "a")
	wantAddresses(t, p.Index(), shard, "a", "1.1.1.1", "2.2.2.2")
	sendDelta(now, shard, "a", xdsupdate.EndpointChange{New: third}, xdsupdate.EndpointChange{Old: first, New: ep("4.4.4.4")})
	wantAddresses(t, p.Index(), shard, "a", "3.3.3.3", "4.4.4.4")
	sendDelta(now, shard, "a", xdsupdate.EndpointChange{Old: third})
	wantAddresses(t, p.Index(), shard, "a", "4.4.4.4")
	recorder.Expect(t,
		"EDSDeltaUpdate Kubernetes/c1 default/a [+1.1.1.1:8080/http +2.2.2.2:8080/http]",
		"EDSUpdate Kubernetes/c1 default/a [3.3.3.3:8080/http 4.4.4.4:8080/http]",
		"EDSDeltaUpdate Kubernetes/c1 default/a [-3.3.3.3:8080/http]")
}

// TestPrune removes what the new owner did not write, and nothing of others.
func TestPrune(t *testing.T) {
	opts := xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{Endpoints: true}}
	inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
		index, shard, other := p.Index(), shardOf("c1"), shardOf("c2")
		writers := xdsupdate.NewWriters(p)
		was := writers.New()
		for _, name := range []string{"a", "b", "c", "d", "e", "empty", "gone"} {
			was.EDSUpdate(shard, registry.Hostname(name), ns, eps(ep("1.1.1.1")))
		}
		was.EDSUpdate(shard, "empty", ns, nil)
		was.SvcUpdate(shard, "gone", ns, registry.EventDelete)
		index.UpdateServiceEndpoints(other, "b", ns, eps(ep("2.2.2.2")))
		now := writers.New()
		now.EDSUpdate(shard, "c", ns, eps(ep("1.1.1.1")))
		sendDelta(now, shard, "d", xdsupdate.EndpointChange{New: ep("1.1.1.1")})
		now.SvcUpdate(shard, "e", ns, registry.EventAdd) // defines the service, and has no endpoints
		got.skip(time.Second)
		now.Complete()
		now.Complete()
		got.expect(time.Second,
			"1.1s full push of ServiceEntry/default/a,ServiceEntry/default/b,ServiceEntry/default/e (cluster 3)")
		wantAddresses(got.t, index, other, "b", "2.2.2.2")
		wantAddresses(got.t, index, shard, "b")
		wantAddresses(got.t, index, shard, "c", "1.1.1.1")
		wantAddresses(got.t, index, shard, "d", "1.1.1.1")
		if n := len(keysOf(index)); n != 3 {
			got.t.Errorf("%d services are left, want b, c and d: %v", n, keysOf(index))
		}
		now.RemoveShard(shard)
		got.expect(time.Second, "2.1s full push of ServiceEntry/default/c,ServiceEntry/default/d (cluster 1)")
		for view := range index.All() {
			if n := len(view.Shard(other)); n != view.Len() {
				got.t.Errorf("%s has %d endpoints, %d of them of the other shard", view.Hostname(), view.Len(), n)
			}
		}
	})
}

// TestUnownedWrites are never refused.
func TestUnownedWrites(t *testing.T) {
	p, shard, one := newQuietPusher(), shardOf("c1"), ep("1.1.1.1")
	p.EDSUpdate(shard, host, ns, eps(one))
	w := xdsupdate.NewWriters(p).New()
	w.Take(shard)
	p.EDSDeltaUpdate(shard, host, ns, []xdsupdate.EndpointChange{{Old: one, New: ep("2.2.2.2")}, {New: ep("3.3.3.3")}})
	w.Complete()
	wantAddresses(t, p.Index(), shard, host, "2.2.2.2", "3.3.3.3")
}

// TestOwnersRace: old owners go on writing while new ones take over; when the last
// one has synced and pruned, everything is as it says: also for an updater that
// knows nothing of writers.
func TestOwnersRace(t *testing.T) {
	const services, last = 40, 7
	for round := range 30 {
		behind, p, shard := newQuietPusher(), newQuietPusher(), shardOf("c1")
		writers := xdsupdate.NewWriters(xdsupdate.Multi(xdsupdate.NewWriters(p).New(), plain{behind}))
		var wg sync.WaitGroup
		for i := range last + 1 {
			w, list := writers.New(), eps(ep(address(i)))
			w.Take(shard)
			work := func() {
				wg.Go(w.Complete) // the updater still sees one call at a time
				for s := range services {
					name := registry.Hostname(strconv.Itoa(s))
					switch {
					case i == last && s%2 == 1: // not written by the last one
					case s%3 == 0:
						w.SvcUpdate(shard, name, ns, registry.EventDelete)
						w.EDSUpdate(shard, name, ns, list)
					default:
						w.EDSUpdate(shard, name, ns, list)
					}
				}
				if i != last {
					w.Complete()
					w.RemoveShard(shard)
				}
			}
			if i < last {
				wg.Go(work)
				continue
			}
			work()
			wg.Wait()
			w.Complete()
		}
		for _, index := range []*xdsupdate.EndpointIndex{p.Index(), behind.Index()} {
			for s := range services {
				var want []string
				if s%2 == 0 {
					want = []string{address(last)}
				}
				if wantAddresses(t, index, shard, strconv.Itoa(s), want...); t.Failed() {
					t.Fatalf("round %d", round)
				}
			}
		}
	}
}

// TestOwnerPassesTheRest: what is not about endpoints, until it is closed.
func TestOwnerPassesTheRest(t *testing.T) {
	var proxies int
	opts := xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{Endpoints: true}, ProxyUpdate: func(registry.ClusterID, string) { proxies++ }}
	inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
		u := xdsupdate.NewWriters(p).New()
		for range 2 {
			u.ConfigUpdate(fullPush("v"))
			u.ProxyUpdate("c1", "1.1.1.1")
			u.RemoveShard(shardOf("c1"))
			u.Close()
		}
		got.expect(time.Second, "100ms full push of VirtualService/default/v (config 1)")
		if proxies != 1 {
			got.t.Errorf("%d proxies, want 1", proxies)
		}
	})
}

// TestOwnersOfAnyUpdater: of one that knows nothing of owners, calls of those that have
// no right are dropped, and what predecessors left is emptied. Nil is Discard.
func TestOwnersOfAnyUpdater(t *testing.T) {
	type recorder interface {
		xdsupdate.XDSUpdater
		Take() []xdstest.Call
	}
	for name, test := range map[string]struct {
		updater recorder
		second  string
	}{
		"lists":  {&xdstest.Recorder{}, "EDSUpdate Kubernetes/c1 default/written [2.2.2.2:8080/http 3.3.3.3:8080/http]"},
		"deltas": {&xdstest.DeltaRecorder{}, "EDSDeltaUpdate Kubernetes/c1 default/written [+3.3.3.3:8080/http]"},
	} {
		t.Run(name, func(t *testing.T) {
			updater := test.updater
			writers, shard := xdsupdate.NewWriters(updater), shardOf("c1")
			calls := func(want ...string) {
				t.Helper()
				var got []string
				for _, c := range updater.Take() {
					got = append(got, c.String())
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			}
			was := writers.New()
			was.EDSUpdate(shard, "written", ns, eps(ep("1.1.1.1")))
			was.EDSCacheUpdate(shard, "cached", ns, eps(ep("1.1.1.1")))
			was.EDSUpdate(shard, "gone", ns, eps(ep("1.1.1.1")))
			was.SvcUpdate(shard, "gone", ns, registry.EventDelete)
			was.Close()
			updater.Take()
			now := writers.New()
			now.Take(shard)
			callRefused(was, shard, "written")
			calls()
			now.EDSDeltaUpdate(shard, "written", ns, []xdsupdate.EndpointChange{{New: ep("2.2.2.2")}})
			calls("EDSUpdate Kubernetes/c1 default/written [2.2.2.2:8080/http]") // the first delta is the list
			now.EDSDeltaUpdate(shard, "written", ns, []xdsupdate.EndpointChange{{New: ep("3.3.3.3")}})
			calls(test.second)
			now.Complete()
			calls("EDSUpdate Kubernetes/c1 default/cached []")
			now.Complete()
			calls()
			now.RemoveShard(shard)
			updater.Take()
			last := writers.New()
			last.Take(shard)
			last.Complete()
			calls() // nothing is left
		})
	}
	nobody := xdsupdate.NewWriters(nil).New()
	callEverything(nobody)
	nobody.Close()
}

// calledBack is an updater that calls a function in its next call.
type calledBack struct {
	xdstest.Recorder
	call func()
}

func (u *calledBack) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, list []*registry.Endpoint) {
	if call := u.call; call != nil {
		u.call = nil
		call()
	}
	u.Recorder.EDSUpdate(shard, hostname, namespace, list)
}

// TestTakenOverInACall: a call that is being made when the shard is taken over precedes
// those of the new owner, and nobody waits for it, not even the call itself.
func TestTakenOverInACall(t *testing.T) {
	var u calledBack
	writers, shard := xdsupdate.NewWriters(&u), shardOf("c1")
	was, now := writers.New(), writers.New()
	u.call = func() {
		now.EDSUpdate(shard, host, ns, eps(ep("2.2.2.2")))
		now.SvcUpdate(shard, "b", ns, registry.EventDelete)
		now.Close() // what was called before is made all the same
		was.EDSUpdate(shard, host, ns, eps(ep("3.3.3.3")))
	}
	was.EDSUpdate(shard, host, ns, eps(ep("1.1.1.1")))
	u.Expect(t,
		"EDSUpdate Kubernetes/c1 default/a.example.com [1.1.1.1:8080/http]",
		"EDSUpdate Kubernetes/c1 default/a.example.com [2.2.2.2:8080/http]",
		"SvcUpdate Kubernetes/c1 default/b delete",
		"EDSUpdate Kubernetes/c1 default/a.example.com [3.3.3.3:8080/http]")
}

// TestPanicInACall: those that wait are made all the same, and the panic is the
// caller's.
func TestPanicInACall(t *testing.T) {
	var u calledBack
	owner, shard := xdsupdate.NewWriters(&u).New(), shardOf("c1")
	u.call = func() {
		owner.EDSUpdate(shard, "later", ns, nil)
		panic("updater")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		owner.EDSUpdate(shard, host, ns, nil)
	}()
	owner.EDSUpdate(shard, "last", ns, nil)
	u.Expect(t, "EDSUpdate Kubernetes/c1 default/later []", "EDSUpdate Kubernetes/c1 default/last []")
}
