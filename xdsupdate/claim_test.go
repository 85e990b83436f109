// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
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

// TestReplacedOwnerWritesNoMore: whatever it still does has no effect.
func TestReplacedOwnerWritesNoMore(t *testing.T) {
	index, shard := xdsupdate.NewEndpointIndex(), shardOf("c1")
	was := index.Claim(shard)
	if got := was.UpdateServiceEndpoints(host, ns, eps(ep("1.1.1.1"))); got != full {
		t.Errorf("first endpoints: %v, want %v", got, full)
	}
	now := index.Claim(shard)
	if was.Valid() || !now.Valid() || now.Shard() != shard {
		t.Errorf("Valid: %v before, %v now, of %v", was.Valid(), now.Valid(), now.Shard())
	}
	wantAddresses(t, index, shard, host, "1.1.1.1") // kept until overwritten
	pushed := []xdsupdate.PushType{
		was.UpdateServiceEndpoints(host, ns, eps(ep("6.6.6.6"))),
		was.UpdateServiceEndpoints(host, ns, nil),
		was.UpdateServiceEndpoints("new", ns, eps(ep("6.6.6.6"))),
		was.UpdateServiceEndpoints("new", ns, nil),
		was.UpdateEndpoints(host, ns, []xdsupdate.EndpointChange{{New: ep("6.6.6.6")}}),
	}
	for i, push := range pushed {
		if push != no {
			t.Errorf("write %d of the replaced owner: %v, want %v", i, push, no)
		}
	}
	was.DeleteService(host, ns)
	was.Close()
	if gone := append(was.Remove(), was.Prune()...); gone != nil {
		t.Errorf("the replaced owner removed %v", gone)
	}
	wantAddresses(t, index, shard, host, "1.1.1.1")
	if keys := keysOf(index); len(keys) != 1 {
		t.Errorf("services are %v", keys)
	}
	if got := now.UpdateServiceEndpoints(host, ns, eps(ep("2.2.2.2"))); got != incremental {
		t.Errorf("the new owner: %v, want %v", got, incremental)
	}
	wantAddresses(t, index, shard, host, "2.2.2.2")
}

func TestClosedOwnerWritesNoMore(t *testing.T) {
	index, shard := xdsupdate.NewEndpointIndex(), shardOf("c1")
	w := index.Claim(shard)
	w.UpdateServiceEndpoints(host, ns, eps(ep("1.1.1.1")))
	w.Close()
	w.Close()
	w.UpdateServiceEndpoints(host, ns, eps(ep("2.2.2.2")))
	if w.Valid() {
		t.Error("closed, and still valid")
	}
	wantAddresses(t, index, shard, host, "1.1.1.1")
	next := index.Claim(shard)
	w.Close() // takes nothing from the next one
	next.UpdateServiceEndpoints(host, ns, eps(ep("3.3.3.3")))
	wantAddresses(t, index, shard, host, "3.3.3.3")
}

// TestSameContentFromTheNextOwner is no push.
func TestSameContentFromTheNextOwner(t *testing.T) {
	index, shard := xdsupdate.NewEndpointIndex(), shardOf("c1")
	list := eps(ep("1.1.1.1", account("a")), ep("2.2.2.2"))
	index.Claim(shard).UpdateServiceEndpoints(host, ns, list)
	next := index.Claim(shard)
	if got := next.UpdateServiceEndpoints(host, ns, list); got != no {
		t.Errorf("the same list: %v, want %v", got, no)
	}
	if gone := next.Prune(); gone != nil {
		t.Errorf("Prune removed %v", gone)
	}
	third := index.Claim(shard)
	changes := []xdsupdate.EndpointChange{{New: ep("2.2.2.2")}, {New: ep("1.1.1.1", account("a"))}}
	if got := third.UpdateEndpoints(host, ns, changes); got != no {
		t.Errorf("the same endpoints as changes: %v, want %v", got, no)
	}
	wantAddresses(t, index, shard, host, "1.1.1.1", "2.2.2.2")
	if got := third.UpdateEndpoints(host, ns, []xdsupdate.EndpointChange{{Old: changes[0].New}}); got != incremental {
		t.Errorf("a change on top: %v, want %v", got, incremental)
	}
	wantAddresses(t, index, shard, host, "1.1.1.1")
}

// TestPrune removes what the new owner did not write, and nothing of others.
func TestPrune(t *testing.T) {
	index, shard, other := xdsupdate.NewEndpointIndex(), shardOf("c1"), shardOf("c2")
	was := index.Claim(shard)
	for _, name := range []string{"a", "b", "c", "d", "empty"} {
		was.UpdateServiceEndpoints(registry.Hostname(name), ns, eps(ep("1.1.1.1")))
	}
	was.UpdateServiceEndpoints("empty", ns, nil)
	index.UpdateServiceEndpoints(other, "b", ns, eps(ep("2.2.2.2")))
	now := index.Claim(shard)
	now.UpdateServiceEndpoints("c", ns, eps(ep("1.1.1.1")))
	now.UpdateEndpoints("d", ns, []xdsupdate.EndpointChange{{New: ep("1.1.1.1")}})
	want := []xdsupdate.ConfigKey{xdsupdate.ServiceKey("a", ns), xdsupdate.ServiceKey("b", ns)}
	if diff := cmp.Diff(want, now.Prune()); diff != "" {
		t.Errorf("Prune (-want +got):\n%s", diff)
	}
	wantAddresses(t, index, other, "b", "2.2.2.2")
	wantAddresses(t, index, shard, "b")
	wantAddresses(t, index, shard, "c", "1.1.1.1")
	wantAddresses(t, index, shard, "d", "1.1.1.1")
	if n := len(keysOf(index)); n != 3 {
		t.Errorf("%d services are left, want b, c and d: %v", n, keysOf(index))
	}
	if gone := now.Remove(); len(gone) != 2 {
		t.Errorf("Remove removed %v, want c and d", gone)
	}
	for view := range index.All() {
		if n := len(view.Shard(other)); n != view.Len() {
			t.Errorf("%s has %d endpoints, %d of them of the other shard", view.Hostname(), view.Len(), n)
		}
	}
}

// TestUnclaimedWrites are never refused, and belong to whoever owns the shard.
func TestUnclaimedWrites(t *testing.T) {
	index, shard := xdsupdate.NewEndpointIndex(), shardOf("c1")
	one := ep("1.1.1.1")
	index.UpdateServiceEndpoints(shard, host, ns, eps(one))
	w := index.Claim(shard)
	changes := []xdsupdate.EndpointChange{{Old: one, New: ep("2.2.2.2")}, {New: ep("3.3.3.3")}}
	if got := index.UpdateEndpoints(shard, host, ns, changes); got != incremental {
		t.Errorf("%v, want %v", got, incremental)
	}
	wantAddresses(t, index, shard, host, "2.2.2.2", "3.3.3.3")
	if gone := w.Prune(); gone != nil {
		t.Errorf("Prune removed %v", gone)
	}
}

// TestClaimsRace: old owners go on writing while new ones take over; when the last
// one has synced and pruned, everything is as it says.
func TestClaimsRace(t *testing.T) {
	const services, owners = 40, 8
	for range 30 {
		index, shard := xdsupdate.NewEndpointIndex(), shardOf("c1")
		var wg sync.WaitGroup
		for owner := range owners {
			w, list := index.Claim(shard), eps(ep(address(owner)))
			last := owner == owners-1
			work := func() {
				for i := range services {
					name := strconv.Itoa(i)
					switch {
					case last && i%2 == 1: // not written by the last one
					case i%3 == 0:
						w.UpdateEndpoints(registry.Hostname(name), ns, []xdsupdate.EndpointChange{{New: list[0]}})
					default:
						w.UpdateServiceEndpoints(registry.Hostname(name), ns, list)
					}
				}
				if w.Prune(); !last {
					w.Remove()
				}
			}
			if !last {
				wg.Go(work)
				continue
			}
			work()
		}
		wg.Wait()
		for i := range services {
			want := 1 - i%2
			view := index.Service(registry.Hostname(strconv.Itoa(i)), ns)
			if view.Len() != want {
				t.Fatalf("service %d has %d endpoints, want %d", i, view.Len(), want)
			}
			for e := range view.All() {
				if e.Address() != address(owners-1) {
					t.Fatalf("service %d has %s of a replaced owner", i, e.Address())
				}
			}
		}
	}
}

// TestShardUpdater: a registry with an updater of its own, replaced.
func TestShardUpdater(t *testing.T) {
	var removed []xdsupdate.ShardKey
	opts := xdsupdate.PusherOptions{
		DebounceEndpoints: true, ShardRemoved: func(s xdsupdate.ShardKey) { removed = append(removed, s) },
	}
	inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
		shard := shardOf("c1")
		was := p.Claim(shard)
		was.EDSUpdate(shard, "a", ns, eps(ep("1.1.1.1")))
		was.EDSDeltaUpdate(shard, "b", ns, []xdsupdate.EndpointChange{{New: ep("1.1.1.1")}})
		got.expect(time.Second, "100ms full push of ServiceEntry/default/a,ServiceEntry/default/b (endpoint 2)")

		now := p.Claim(shard)
		was.EDSUpdate(shard, "a", ns, nil)
		was.EDSCacheUpdate(shard, "a", ns, nil)
		was.EDSDeltaUpdate(shard, "a", ns, []xdsupdate.EndpointChange{{New: ep("6.6.6.6")}})
		was.SvcUpdate(shard, "a", ns, registry.EventDelete)
		was.RemoveShard(shard)
		was.Prune()
		was.Close()
		got.expect(time.Second)
		wantAddresses(got.t, p.Index(), shard, "a", "1.1.1.1")
		wantAddresses(got.t, p.Index(), shard, "b", "1.1.1.1")

		now.EDSUpdate(shard, "a", ns, eps(ep("2.2.2.2")))
		got.expect(time.Second, "2.1s endpoint push of ServiceEntry/default/a (endpoint 1)")
		now.Prune()
		got.expect(time.Second, "3.1s full push of ServiceEntry/default/b (cluster 1)")
		now.SvcUpdate(shard, "a", ns, registry.EventUpdate)
		now.EDSCacheUpdate(shard, "a", ns, eps(ep("3.3.3.3")))
		wantAddresses(got.t, p.Index(), shard, "a", "3.3.3.3")
		now.RemoveShard(shard)
		got.expect(time.Second, "4.1s full push of ServiceEntry/default/a (cluster 1)")
		if diff := cmp.Diff([]xdsupdate.ShardKey{shard}, removed); diff != "" {
			got.t.Errorf("removed shards (-want +got):\n%s", diff)
		}
	})
}

// TestShardUpdaterPassesTheRest: what is not about its shard's endpoints.
func TestShardUpdaterPassesTheRest(t *testing.T) {
	var proxies, removed int
	opts := xdsupdate.PusherOptions{
		DebounceEndpoints: true,
		ProxyUpdate:       func(registry.ClusterID, string) { proxies++ },
		ShardRemoved:      func(xdsupdate.ShardKey) { removed++ },
	}
	inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
		other := shardOf("c2")
		u := p.Claim(shardOf("c1"))
		u.Close()
		u.ConfigUpdate(fullPush("v"))
		u.ProxyUpdate("c1", "1.1.1.1")
		u.EDSUpdate(other, "a", ns, eps(ep("1.1.1.1")))
		u.EDSDeltaUpdate(other, "a", ns, []xdsupdate.EndpointChange{{New: ep("2.2.2.2")}})
		wantAddresses(got.t, p.Index(), other, "a", "1.1.1.1", "2.2.2.2")
		u.EDSCacheUpdate(other, "a", ns, eps(ep("3.3.3.3")))
		wantAddresses(got.t, p.Index(), other, "a", "3.3.3.3")
		u.SvcUpdate(other, "a", ns, registry.EventDelete)
		wantAddresses(got.t, p.Index(), other, "a")
		u.RemoveShard(other)
		got.expect(time.Second,
			"100ms full push of ServiceEntry/default/a,VirtualService/default/v (config 1, endpoint 2)")
		if proxies != 1 || removed != 1 {
			got.t.Errorf("%d proxies and %d removed shards, want 1 and 1", proxies, removed)
		}
	})
}
