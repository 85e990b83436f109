// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// pushes records what a Pusher pushes, and when, since it was made.
type pushes struct {
	t     *testing.T
	start time.Time
	// slow is how long a push takes.
	slow time.Duration

	mu      sync.Mutex
	log     []string
	running int
}

// endless is more pushes than a test looks at. While one follows the other, no time
// passes in a bubble.
const endless = 1000

func (p *pushes) push(r *xdsupdate.PushRequest) {
	at := time.Since(p.start)
	p.mu.Lock()
	if len(p.log) == endless {
		panic("pushes never end, the last one: " + r.String())
	}
	p.running++
	if p.running > 1 {
		p.t.Error("two pushes at a time")
	}
	p.log = append(p.log, at.String()+" "+r.String())
	p.mu.Unlock()
	time.Sleep(p.slow)
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
}

// expect waits until nothing happens any more for a time, and compares.
func (p *pushes) expect(after time.Duration, want ...string) {
	p.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(want, p.log); diff != "" {
		p.t.Errorf("pushes (-want +got):\n%s", diff)
	}
	p.log = nil
}

// inBubble runs a test with a running Pusher, and fake time.
func inBubble(t *testing.T, opts xdsupdate.PusherOptions, test func(p *xdsupdate.Pusher, got *pushes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		got := &pushes{t: t, start: time.Now()}
		p := xdsupdate.NewPusher(got.push, opts)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { p.Run(stop) })
		synctest.Wait() // what comes before Run is not debounced
		test(p, got)
		close(stop)
		wg.Wait()
	})
}

func fullPush(name string) *xdsupdate.PushRequest {
	return &xdsupdate.PushRequest{
		Full: true, ConfigsUpdated: xdsupdate.KeySet(vs(name)),
		Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonConfig: 1},
	}
}

func endpointPush(name string) *xdsupdate.PushRequest {
	return &xdsupdate.PushRequest{
		ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey(registry.Hostname(name), ns)),
		Reason:         map[xdsupdate.TriggerReason]int{xdsupdate.ReasonEndpoint: 1},
	}
}

func vs(name string) xdsupdate.ConfigKey {
	kind := configstore.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "VirtualService"}
	return xdsupdate.ConfigKey{Kind: kind, Name: name, Namespace: ns}
}

// TestFullPushesAreDebounced: quiet 100 ms, as long as that is not longer than
// 10 s, by default.
func TestFullPushesAreDebounced(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{}, func(p *xdsupdate.Pusher, got *pushes) {
		p.ConfigUpdate(fullPush("a"))
		got.expect(99 * time.Millisecond)
		got.expect(2*time.Millisecond, "100ms full push of VirtualService/default/a (config 1)")
	})
}

// TestRequestsAreMergedUntilQuiet: each request starts the quiet time anew.
func TestRequestsAreMergedUntilQuiet(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{}, func(p *xdsupdate.Pusher, got *pushes) {
		for _, name := range []string{"a", "b", "c", "a"} {
			p.ConfigUpdate(fullPush(name))
			time.Sleep(60 * time.Millisecond)
		}
		got.expect(time.Second,
			"280ms full push of VirtualService/default/a,VirtualService/default/b,VirtualService/default/c (config 4)")
	})
}

// TestPushAfterDebounceMax: requests that never stop are pushed nevertheless.
func TestPushAfterDebounceMax(t *testing.T) {
	opts := xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: 100 * time.Millisecond, Max: 200 * time.Millisecond}}
	inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
		for range 9 {
			p.ConfigUpdate(fullPush("a"))
			time.Sleep(45 * time.Millisecond)
		}
		got.expect(time.Second,
			"200ms full push of VirtualService/default/a (config 5)",
			"425ms full push of VirtualService/default/a (config 4)")
	})
}

// TestFirstEndpointChangeGoesAtOnce: by default endpoints wait only until there
// was no push of endpoints for 10 ms, and never for full requests.
func TestFirstEndpointChangeGoesAtOnce(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{}, func(p *xdsupdate.Pusher, got *pushes) {
		p.ConfigUpdate(fullPush("v"))
		p.ConfigUpdate(endpointPush("a"))
		got.expect(4*time.Millisecond, "0s endpoint push of ServiceEntry/default/a (endpoint 1)")
		p.ConfigUpdate(endpointPush("b"))
		got.expect(5 * time.Millisecond)
		p.ConfigUpdate(endpointPush("c"))
		got.expect(11*time.Millisecond,
			"10ms endpoint push of ServiceEntry/default/b,ServiceEntry/default/c (endpoint 2)")
		p.ConfigUpdate(endpointPush("d"))
		got.expect(75*time.Millisecond, "20ms endpoint push of ServiceEntry/default/d (endpoint 1)")
		p.ConfigUpdate(endpointPush("e"))
		got.expect(4*time.Millisecond, "95ms endpoint push of ServiceEntry/default/e (endpoint 1)")
		p.ConfigUpdate(endpointPush("f"))
		got.expect(2*time.Millisecond,
			"100ms full push of ServiceEntry/default/f,VirtualService/default/v (config 1, endpoint 1)")
		p.ConfigUpdate(endpointPush("g"))
		got.expect(time.Second, "110ms endpoint push of ServiceEntry/default/g (endpoint 1)")
	})
}

// TestEndpointsDoNotWaitForOtherChanges: while full requests, or changes of other
// endpoints, come 50 ms or 1 ms apart, each change of endpoints is pushed within
// 10 ms; and the full requests are pushed as if there were no others.
func TestEndpointsDoNotWaitForOtherChanges(t *testing.T) {
	for name, other := range map[string]func(string) *xdsupdate.PushRequest{"full": fullPush, "endpoints": endpointPush} {
		for _, gap := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex // guards what follows
				asked, waited, full := map[string]time.Time{}, time.Duration(0), 0
				p := xdsupdate.NewPusher(func(req *xdsupdate.PushRequest) {
					mu.Lock()
					defer mu.Unlock()
					if req.Full {
						full++
					}
					for _, key := range req.Keys() {
						if at, ok := asked[key.Name]; ok {
							waited = max(waited, time.Since(at))
							delete(asked, key.Name)
						}
					}
				}, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{Max: 10 * time.Second}})
				stop := make(chan struct{})
				var run sync.WaitGroup
				run.Go(func() { p.Run(stop) })
				synctest.Wait()
				const changes = 300
				for i := range changes {
					p.ConfigUpdate(other("other"))
					move := fmt.Sprint("move-", i)
					mu.Lock()
					asked[move] = time.Now()
					mu.Unlock()
					p.ConfigUpdate(endpointPush(move))
					synctest.Wait()
					time.Sleep(gap)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				close(stop)
				run.Wait()
				if len(asked) > 0 || waited > 10*time.Millisecond {
					t.Errorf("%s every %v: %d moves were not pushed, the others after up to %v", name, gap, len(asked), waited)
				}
				want := 0
				if name == "full" {
					want = 1 + int(changes*gap/(10*time.Second)) // one at the end, and one each Debounce.Max
				}
				if full != want {
					t.Errorf("%s every %v: %d full pushes, want %d", name, gap, full, want)
				}
			})
		}
	}
}

// TestLeadingEdge: with LeadingEdge the first full request after a quiet time goes
// at once, too.
func TestLeadingEdge(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{LeadingEdge: true}}, func(p *xdsupdate.Pusher, got *pushes) {
		p.ConfigUpdate(fullPush("a"))
		got.expect(50*time.Millisecond, "0s full push of VirtualService/default/a (config 1)")
		p.ConfigUpdate(fullPush("b"))
		p.ConfigUpdate(fullPush("c"))
		got.expect(time.Second,
			"150ms full push of VirtualService/default/b,VirtualService/default/c (config 2)")
		p.ConfigUpdate(fullPush("d"))
		got.expect(time.Second, "1.05s full push of VirtualService/default/d (config 1)")
	})
}

// TestEndpointsAreNotDebounced: without an interval endpoint pushes go one by one,
// even while full requests wait.
func TestEndpointsAreNotDebounced(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{EndpointInterval: -1}}, func(p *xdsupdate.Pusher, got *pushes) {
		p.ConfigUpdate(fullPush("v"))
		for _, name := range []string{"a", "b", "c"} {
			p.ConfigUpdate(endpointPush(name))
			synctest.Wait()
		}
		got.expect(50*time.Millisecond,
			"0s endpoint push of ServiceEntry/default/a (endpoint 1)",
			"0s endpoint push of ServiceEntry/default/b (endpoint 1)",
			"0s endpoint push of ServiceEntry/default/c (endpoint 1)")
		got.expect(time.Second, "100ms full push of VirtualService/default/v (config 1)")
	})
}

// TestEverythingIsDebounced: with Debounce.Endpoints they wait like all others.
func TestEverythingIsDebounced(t *testing.T) {
	opts := xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{Endpoints: true}}
	inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
		p.ConfigUpdate(endpointPush("a"))
		got.expect(99 * time.Millisecond)
		p.ConfigUpdate(endpointPush("b"))
		got.expect(time.Second, "199ms endpoint push of ServiceEntry/default/a,ServiceEntry/default/b (endpoint 2)")
	})
}

// TestOnePushAtATime: what is asked for during a push is merged and pushed after
// it, endpoints too: Istio 1.30 pushes those at the same time.
func TestOnePushAtATime(t *testing.T) {
	for _, opts := range []xdsupdate.PusherOptions{
		{Debounce: xdsupdate.Debounce{After: -1}},
		{Debounce: xdsupdate.Debounce{After: -1, LeadingEdge: true}},
		{Debounce: xdsupdate.Debounce{After: -1, Endpoints: true}},
	} {
		inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
			got.slow = time.Second
			p.ConfigUpdate(fullPush("a"))
			synctest.Wait()
			p.ConfigUpdate(fullPush("b"))
			p.ConfigUpdate(endpointPush("e"))
			p.ConfigUpdate(fullPush("c"))
			got.expect(5*time.Second,
				"0s full push of VirtualService/default/a (config 1)",
				"1s full push of ServiceEntry/default/e,VirtualService/default/b,VirtualService/default/c (config 2, endpoint 1)")
		})
	}
}

// TestZeroDebounce pushes each request as soon as nothing else is pushed.
func TestZeroDebounce(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}}, func(p *xdsupdate.Pusher, got *pushes) {
		for _, name := range []string{"a", "b"} {
			p.ConfigUpdate(fullPush(name))
			synctest.Wait()
		}
		got.expect(0,
			"0s full push of VirtualService/default/a (config 1)", "0s full push of VirtualService/default/b (config 1)")
	})
}

// TestCallersNeverWait: a push that takes forever delays no caller and nothing is
// lost.
func TestCallersNeverWait(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}}, func(p *xdsupdate.Pusher, got *pushes) {
		got.slow = time.Hour
		p.ConfigUpdate(fullPush("a"))
		synctest.Wait()
		start := time.Now()
		for range 100_000 {
			p.ConfigUpdate(fullPush("b"))
		}
		if waited := time.Since(start); waited > 0 {
			got.t.Errorf("callers waited for %v", waited)
		}
		got.expect(3*time.Hour,
			"0s full push of VirtualService/default/a (config 1)",
			"1h0m0s full push of VirtualService/default/b (config 100000)")
	})
}

func TestRunTwicePanics(t *testing.T) {
	p := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{})
	stop := make(chan struct{})
	close(stop)
	p.Run(stop)
	defer func() {
		if recover() == nil {
			t.Error("the second Run did not panic")
		}
	}()
	p.Run(stop)
}

// TestPushMayAskForPushes: Push is called with no lock held.
func TestPushMayAskForPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *xdsupdate.Pusher
		var names []string
		p = xdsupdate.NewPusher(func(r *xdsupdate.PushRequest) {
			names = append(names, r.Keys()[0].Name)
			if len(names) < 3 {
				p.ConfigUpdate(fullPush(names[len(names)-1] + "+"))
				p.EDSUpdate(shardOf("c1"), host, ns, nil)
			}
		}, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}})
		p.ConfigUpdate(fullPush("a"))
		for range 5 {
			if err := p.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(names) < 3 || names[0] != "a" {
			t.Errorf("pushed %q", names)
		}
	})
}

// TestInitialStateIsNotDebounced: what was asked for before Run is pushed when Run
// begins, so that a change of endpoints does not wait for the definitions that came
// with the initial state.
func TestInitialStateIsNotDebounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var got []string
		p := xdsupdate.NewPusher(func(req *xdsupdate.PushRequest) {
			got = append(got, fmt.Sprint(time.Since(start), " ", req))
		})
		shard := xdsupdate.ShardKey{Provider: registry.External}
		p.SvcUpdate(shard, "a.example.com", "ns", registry.EventAdd)
		p.ConfigUpdate(&xdsupdate.PushRequest{
			Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey("a.example.com", "ns")),
		})
		stop := make(chan struct{})
		var run sync.WaitGroup
		run.Go(func() { p.Run(stop) })
		time.Sleep(20 * time.Millisecond)
		p.EDSUpdate(shard, "a.example.com", "ns", nil)
		synctest.Wait()
		close(stop)
		run.Wait()
		if len(got) != 2 || !strings.HasPrefix(got[0], "0s full") || !strings.HasPrefix(got[1], "20ms endpoint") {
			t.Errorf("pushes %q, want a full one at 0s and one of endpoints at 20ms", got)
		}
	})
}

// TestPushOfEverythingHasDefinitions: a push of everything is full if a service was
// defined anew before it; endpoints that come after it do not have to wait for one.
func TestPushOfEverythingHasDefinitions(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}}, func(p *xdsupdate.Pusher, got *pushes) {
		shard := shardOf("c1")
		p.EDSCacheUpdate(shard, host, ns, eps(ep("1.1.1.1")))
		p.SvcUpdate(shard, host, ns, registry.EventUpdate)
		everything := &xdsupdate.PushRequest{Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonConfig: 1}}
		p.ConfigUpdate(everything)
		got.expect(time.Second, "0s full push of everything (config 1)")
		p.EDSUpdate(shard, host, ns, eps(ep("2.2.2.2")))
		got.expect(time.Second, "1s endpoint push of ServiceEntry/default/a.example.com (endpoint 1)")
		p.ConfigUpdate(everything)
		got.expect(time.Second, "2s endpoint push of everything (config 1)")
	})
}
