// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestPushIsOfTheMomentOfItsRequest: registries that set no services show states without a
// pause, and say so in batches; what is captured for a push has the state of everything that
// its request names, and all of the batches that it has a part of.
func TestPushIsOfTheMomentOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown, captured uint32
		var p *xdsupdate.Pusher
		captures, pushes := 0, 0
		keys := xdsupdate.KeySet(fullPush("a").Keys()[0], fullPush("b").Keys()[0])
		p = xdsupdate.NewPusher(func(r *xdsupdate.PushRequest) {
			pushes++
			if len(r.ConfigsUpdated) != len(keys) {
				t.Errorf("a part of a batch was taken: %s", r)
			}
		}, xdsupdate.PusherOptions{
			Capture: func(*xdsupdate.PushRequest, *xdsupdate.Root) bool {
				captured = shown
				if captures++; captures < 3 { // as another goroutine would
					p.UpdateBatch(func(w xdsupdate.XDSUpdater) {
						shown++
						w.ConfigUpdate(fullPush("b"))
					})
				}
				return false
			},
		})
		p.ConfigUpdate(fullPush("a"))
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if captures != 3 || captured != shown || pushes != 1 {
			t.Errorf("%d pushes after %d captures, the last of state %d, want 1, 3 and %d", pushes, captures, captured, shown)
		}
	})
}

// TestCaptureInABatch: it captures a state that a registry shows while its batch goes on a few
// times, and no more.
func TestCaptureInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		captures := 0
		p := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{
			Capture: func(*xdsupdate.PushRequest, *xdsupdate.Root) bool {
				captures++
				return false
			},
		})
		p.ConfigUpdate(fullPush("a"))
		p.UpdateBatch(func(xdsupdate.XDSUpdater) {
			if err := p.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if captures < 2 || captures > 5 {
			t.Errorf("%d captures", captures)
		}
	})
}

// TestCaptureThatPanics: there is no push, that is logged, and a push of everything makes
// up for it. A Prepare that panics is logged.
func TestCaptureThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		var got []string
		var log strings.Builder
		p := xdsupdate.NewPusher(func(r *xdsupdate.PushRequest) { got = append(got, r.String()) }, xdsupdate.PusherOptions{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Capture: func(*xdsupdate.PushRequest, *xdsupdate.Root) bool {
				if !mended.Load() {
					panic("broken capture")
				}
				return true
			},
		})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { p.Run(stop) })
		synctest.Wait()
		p.ConfigUpdate(fullPush("a"))
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if len(got) > 0 || !strings.Contains(log.String(), "broken capture") {
			t.Errorf("pushes %q, log %s", got, log.String())
		}
		mended.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(got) == 0 || !strings.Contains(got[0], "everything") {
			t.Errorf("pushes %q, want one of everything", got)
		}
		close(stop)
		wg.Wait()
	})
}

// TestEndpointSnapshots: random updates; each snapshot keeps what the index had, and
// ChangedSince names all hosts that differ between two.
func TestEndpointSnapshots(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	index := xdsupdate.NewEndpointIndex()
	content := func(s func(registry.Hostname, string) *xdsupdate.ServiceEndpoints) map[registry.Hostname]string {
		out := map[registry.Hostname]string{}
		for i := range 40 {
			name := registry.Hostname(fmt.Sprint("h", i))
			v := s(name, ns)
			if v == nil {
				continue
			}
			for key, list := range v.Shards() {
				for _, e := range list {
					out[name] += fmt.Sprint(key, e.Address(), ";")
				}
			}
			out[name] += fmt.Sprint(v.ServiceAccounts())
		}
		return out
	}
	type taken struct {
		snapshot *xdsupdate.EndpointSnapshot
		want     map[registry.Hostname]string
	}
	all := []taken{{nil, map[registry.Hostname]string{}}}
	for range 60 {
		for range random.IntN(20) {
			name, shard := registry.Hostname(fmt.Sprint("h", random.IntN(40))), shardOf(fmt.Sprint("c", random.IntN(3)))
			switch random.IntN(8) {
			case 0:
				index.DeleteServiceShard(shard, name, ns)
			case 1:
				index.RemoveShard(shard)
			case 2:
				index.UpdateServiceEndpoints(shard, name, ns, nil)
			default:
				index.UpdateServiceEndpoints(shard, name, ns, eps(ep(address(random.IntN(1000)))))
			}
		}
		s := index.Snapshot()
		want := content(index.Service)
		known := 0
		for v := range s.All() {
			known++
			if s.Service(v.Hostname(), v.Namespace()) != v {
				t.Fatalf("All yields another view of %s than Service", v.Hostname())
			}
		}
		if known != len(want) {
			t.Fatalf("All yields %d services, want %d", known, len(want))
		}
		all = append(all, taken{s, want})
	}
	for i, a := range all {
		if got := content(a.snapshot.Service); fmt.Sprint(got) != fmt.Sprint(a.want) {
			t.Fatalf("snapshot %d has become %v, was %v", i, got, a.want)
		}
		for j, b := range all[:i+1] {
			changed := map[registry.Hostname]bool{}
			for name := range a.snapshot.ChangedSince(b.snapshot) {
				changed[name] = true
			}
			for k := range 40 {
				if name := registry.Hostname(fmt.Sprint("h", k)); a.want[name] != b.want[name] && !changed[name] {
					t.Fatalf("ChangedSince of %d and %d lacks %s: %q, %q", i, j, name, a.want[name], b.want[name])
				}
			}
			if i == j && len(changed) > 0 {
				t.Fatalf("snapshot %d differs from itself in %v", i, changed)
			}
		}
	}
}

// TestFullPushTakesAll: a request for endpoints becomes full because the definition of its
// service has changed; the push takes what was asked for with that, though its quiet time
// has not passed.
func TestFullPushTakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pushed []string
		p := xdsupdate.NewPusher(func(r *xdsupdate.PushRequest) {
			pushed = append(pushed, fmt.Sprintf("%d keys, full: %v", len(r.ConfigsUpdated), r.Full))
		}, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: time.Second, EndpointInterval: 10 * time.Millisecond}})
		stop := make(chan struct{})
		var run sync.WaitGroup
		run.Go(func() { p.Run(stop) })
		shard := xdsupdate.ShardKey{Cluster: "c", Provider: registry.External}
		endpoint := func(address string) []*registry.Endpoint {
			return []*registry.Endpoint{{Addresses: []string{address}, ServicePortName: "http", EndpointPort: 80, HealthStatus: registry.Healthy}}
		}
		p.EDSUpdate(shard, "a", "ns", endpoint("10.0.0.1"))
		time.Sleep(2 * time.Second)
		p.EDSUpdate(shard, "a", "ns", endpoint("10.0.0.2")) // at once
		synctest.Wait()
		pushed = nil
		p.EDSUpdate(shard, "a", "ns", endpoint("10.0.0.3")) // after the interval
		p.UpdateBatch(func(w xdsupdate.XDSUpdater) {
			w.SvcUpdate(shard, "a", "ns", registry.EventUpdate)
			w.ConfigUpdate(fullPush("b"))
			w.ConfigUpdate(fullPush("c"))
		})
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if want := []string{"3 keys, full: true"}; !slices.Equal(pushed, want) {
			t.Errorf("pushes: %q, want %q", pushed, want)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(pushed) != 1 {
			t.Errorf("pushes: %q, want one", pushed)
		}
		close(stop)
		run.Wait()
	})
}
