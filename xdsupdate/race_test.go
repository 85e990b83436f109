// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// barrier lets a number of goroutines begin a round at the same instant: they
// spin, because a channel would wake one after the other.
type barrier struct {
	parties uint64
	arrived atomic.Uint64
}

func (b *barrier) wait(round int) {
	b.arrived.Inc()
	for b.arrived.Load() < uint64(round+1)*b.parties {
		runtime.Gosched()
	}
}

// TestNoUpdateIsLost: updates of one shard meet deletes of the only other shard of
// the service. Istio 1.30 unlinks the service while the update is on its way to
// it, and loses 159 of a million updates.
func TestNoUpdateIsLost(t *testing.T) {
	t.Run("aligned", func(t *testing.T) {
		race := newLostUpdates(1_000_000)
		begin, done := barrier{parties: 2}, barrier{parties: 2}
		var wg sync.WaitGroup
		wg.Go(func() {
			for round := range race.rounds {
				begin.wait(round)
				race.forgetTheirs()
				done.wait(round)
			}
		})
		for round := range race.rounds {
			race.forgetMine()
			race.updateTheirs()
			begin.wait(round)
			race.updateMine()
			done.wait(round)
			race.check()
		}
		wg.Wait()
		race.report(t)
	})
	t.Run("free", func(t *testing.T) {
		race := newLostUpdates(1_000_000)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					race.updateTheirs()
					race.forgetTheirs()
				}
			}
		}()
		for range race.rounds {
			race.forgetMine()
			race.updateMine()
			race.check()
		}
		close(stop)
		<-stopped
		race.report(t)
	})
}

// lostUpdates updates one shard of a service while another comes and goes.
type lostUpdates struct {
	index        *xdsupdate.EndpointIndex
	mine, theirs xdsupdate.ShardKey
	list, other  []*registry.Endpoint
	rounds, lost int
}

func newLostUpdates(rounds int) *lostUpdates {
	if !tier.Full() || raceEnabled {
		rounds /= 50
	}
	return &lostUpdates{
		index: xdsupdate.NewEndpointIndex(), mine: shardOf("mine"), theirs: shardOf("theirs"),
		list: eps(ep("1.1.1.1")), other: eps(ep("2.2.2.2")), rounds: rounds,
	}
}

func (l *lostUpdates) updateMine()   { l.index.UpdateServiceEndpoints(l.mine, host, ns, l.list) }
func (l *lostUpdates) updateTheirs() { l.index.UpdateServiceEndpoints(l.theirs, host, ns, l.other) }
func (l *lostUpdates) forgetMine()   { l.index.DeleteServiceShard(l.mine, host, ns) }
func (l *lostUpdates) forgetTheirs() { l.index.DeleteServiceShard(l.theirs, host, ns) }

func (l *lostUpdates) check() {
	if len(l.index.Service(host, ns).Shard(l.mine)) != 1 {
		l.lost++
	}
}

func (l *lostUpdates) report(t *testing.T) {
	t.Helper()
	if l.lost > 0 {
		t.Errorf("%d of %d updates were lost", l.lost, l.rounds)
	}
}

// TestOneRacerCreates: of the shards that bring the first endpoints of a service
// at the same time one causes a full push. In Istio 1.30 all may.
func TestOneRacerCreates(t *testing.T) {
	rounds := tier.Share(20_000)
	const racers = 4
	index, begin := xdsupdate.NewEndpointIndex(), barrier{parties: racers}
	created := make([][]bool, racers)
	var wg sync.WaitGroup
	for racer := range racers {
		created[racer] = make([]bool, rounds)
		shard, list := shardOf(strconv.Itoa(racer)), eps(ep(address(racer)))
		wg.Go(func() {
			for round := range rounds {
				name := strconv.Itoa(round)
				begin.wait(round)
				created[racer][round] = index.UpdateServiceEndpoints(shard, registry.Hostname(name), ns, list) == full
			}
		})
	}
	wg.Wait()
	for round := range rounds {
		n := 0
		for racer := range racers {
			if created[racer][round] {
				n++
			}
		}
		if view := index.Service(registry.Hostname(strconv.Itoa(round)), ns); n != 1 || view.Len() != racers {
			t.Fatalf("round %d: %d full pushes, %d endpoints, want 1 and %d", round, n, view.Len(), racers)
		}
	}
}

// script is what one registry does to its shard, prepared so that it does not
// depend on what the others do.
type script []func(index *xdsupdate.EndpointIndex) xdsupdate.PushType

// newScript makes random lists, deltas and deletes for some services. All
// accounts are those of the anchor, so that push types depend on the shard alone.
func newScript(seed uint64, shard xdsupdate.ShardKey, services, steps int) script {
	r := rand.New(rand.NewPCG(seed, 3))
	now := make([][]*registry.Endpoint, services)
	var out script
	for range steps {
		data := make([]byte, 64)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		c, i := &choices{data: data}, r.IntN(services)
		name := strconv.Itoa(i)
		switch r.IntN(10) {
		case 0:
			now[i] = nil
			out = append(out, func(index *xdsupdate.EndpointIndex) xdsupdate.PushType {
				index.DeleteServiceShard(shard, registry.Hostname(name), ns)
				return no
			})
		case 1, 2, 3:
			list := c.list(now[i])
			now[i] = list
			out = append(out, func(index *xdsupdate.EndpointIndex) xdsupdate.PushType {
				return index.UpdateServiceEndpoints(shard, registry.Hostname(name), ns, slices.Clone(list))
			})
		default:
			changes, list := c.changes(now[i])
			now[i] = list
			out = append(out, func(index *xdsupdate.EndpointIndex) xdsupdate.PushType {
				return index.UpdateEndpoints(shard, registry.Hostname(name), ns, changes)
			})
		}
	}
	return out
}

func (s script) run(index *xdsupdate.EndpointIndex) []xdsupdate.PushType {
	var out []xdsupdate.PushType
	for _, step := range s {
		out = append(out, step(index))
	}
	return out
}

// anchored returns an index in which each service has, in a shard that does not
// change, every account.
func anchored(services int) *xdsupdate.EndpointIndex {
	index := xdsupdate.NewEndpointIndex()
	var list []*registry.Endpoint
	for i := range 5 {
		list = append(list, ep(address(100+i), account(string(rune('a'+i)))))
	}
	for i := range services {
		index.UpdateServiceEndpoints(shardOf("anchor"), registry.Hostname(strconv.Itoa(i)), ns, list)
	}
	return index
}

// TestInterleavingsEndAlike: registries that work at the same time, with readers
// among them, leave the same index and get the same push types as one after the
// other.
func TestInterleavingsEndAlike(t *testing.T) {
	const services = 3
	for seed := range seeds() {
		one, all := anchored(services), anchored(services)
		want, got := runBoth(t, newScripts(seed, services), one, all)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: push types (-one after the other +at the same time):\n%s", seed, diff)
		}
		if diff := cmp.Diff(dump(one), dump(all)); diff != "" {
			t.Fatalf("seed %d: index (-one after the other +at the same time):\n%s", seed, diff)
		}
	}
}

// TestInterleavingsOfServicesThatComeAndGo: with no anchor, services and their
// accounts come and go; which writer makes them depends on the order, what is left does
// not.
func TestInterleavingsOfServicesThatComeAndGo(t *testing.T) {
	for seed := range seeds() {
		one, all := xdsupdate.NewEndpointIndex(), xdsupdate.NewEndpointIndex()
		runBoth(t, newScripts(seed, 3), one, all)
		want, got := dump(one), dump(all)
		for _, d := range []map[string][]*registry.Endpoint{want, got} {
			maps.DeleteFunc(d, func(key string, _ []*registry.Endpoint) bool { return strings.HasSuffix(key, "accounts") })
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: index (-one after the other +at the same time):\n%s", seed, diff)
		}
	}
}

func seeds() uint64 {
	if !tier.Full() || raceEnabled {
		return 6
	}
	return 20
}

func newScripts(seed uint64, services int) []script {
	var out []script
	for i := range uint64(4) {
		out = append(out, newScript(seed*4+i, shardOf(strconv.Itoa(int(i))), services, 300))
	}
	return out
}

// runBoth runs scripts one after the other on one index, and at the same time,
// with readers, on another.
func runBoth(t *testing.T, scripts []script, one, all *xdsupdate.EndpointIndex) (want, got [][]xdsupdate.PushType) {
	t.Helper()
	for _, s := range scripts {
		want = append(want, s.run(one))
	}
	got = make([][]xdsupdate.PushType, len(scripts))
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for range 2 {
		readers.Go(func() { readUntil(t, all, stop) })
	}
	for i, s := range scripts {
		writers.Go(func() { got[i] = s.run(all) })
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	return want, got
}

// readUntil checks that whatever readers see is whole.
func readUntil(t *testing.T, index *xdsupdate.EndpointIndex, stop <-chan struct{}) {
	t.Helper()
	for {
		select {
		case <-stop:
			return
		default:
		}
		for view := range index.All() {
			accounts, n := view.ServiceAccounts(), 0
			for _, list := range view.Shards() {
				n += len(list)
				if !slices.IsSortedFunc(list, registry.CompareEndpoints) {
					t.Error("a reader saw a shard that is not sorted")
				}
			}
			for e := range view.All() {
				n--
				if a := e.Attributes().ServiceAccount; a != "" && !slices.Contains(accounts, a) {
					t.Errorf("a reader saw an endpoint of %s with the accounts %q", a, accounts)
				}
			}
			if n != 0 {
				t.Error("a reader saw two states of one service")
			}
		}
	}
}

// dump returns all that an index shows.
func dump(index *xdsupdate.EndpointIndex) map[string][]*registry.Endpoint {
	out := map[string][]*registry.Endpoint{}
	for view := range index.All() {
		for shard, list := range view.Shards() {
			out[view.Key().String()+" "+shard.String()] = list
		}
		var accounts []*registry.Endpoint
		for _, a := range view.ServiceAccounts() {
			accounts = append(accounts, ep("", account(a)))
		}
		out[view.Key().String()+" accounts"] = accounts
	}
	return out
}

// TestReadersFindEveryService while others come and go, and the table grows and
// shrinks.
func TestReadersFindEveryService(t *testing.T) {
	index := xdsupdate.NewEndpointIndex()
	const stay, visit = 50, 5000
	for i := range stay {
		index.UpdateServiceEndpoints(shardOf("a"), registry.Hostname("stay"+strconv.Itoa(i)), ns, eps(ep(address(i))))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for i := range stay {
					if index.Service(registry.Hostname("stay"+strconv.Itoa(i)), ns).Len() != 1 {
						t.Error("a reader missed a service")
					}
				}
				seen := map[string]int{}
				for view := range index.All() {
					seen[string(view.Hostname())]++
				}
				for i := range stay {
					if seen["stay"+strconv.Itoa(i)] != 1 {
						t.Error("All did not show a service once")
					}
				}
			}
		})
	}
	for range 3 {
		for i := range visit {
			index.UpdateServiceEndpoints(shardOf("b"), registry.Hostname(strconv.Itoa(i)), ns, eps(ep(address(i))))
		}
		if n := len(index.RemoveShard(shardOf("b"))); n != visit {
			t.Errorf("RemoveShard returned %d keys, want %d", n, visit)
		}
	}
	close(stop)
	wg.Wait()
	if n := len(keysOf(index)); n != stay {
		t.Errorf("%d services are left, want %d", n, stay)
	}
}
