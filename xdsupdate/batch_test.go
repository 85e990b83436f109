// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// versioned is a registry whose services and endpoints have a version.
type versioned struct {
	name    registry.Hostname
	shown   atomic.Uint32
	shard   xdsupdate.ShardKey
	updater xdsupdate.XDSUpdater
}

// change publishes the next version.
func (v *versioned) change() {
	xdsupdate.UpdateBatch(v.updater, func() {
		version := v.shown.Inc()
		v.updater.SvcUpdate(v.shard, v.name, ns, registry.EventUpdate)
		v.updater.EDSUpdate(v.shard, v.name, ns, eps(ep("1.1.1.1", port(version))))
		v.updater.ConfigUpdate(fullPush(string(v.name)))
	})
}

func port(number uint32) func(*registry.Endpoint) {
	return func(e *registry.Endpoint) { e.EndpointPort = number }
}

// pushedVersion returns the version of the endpoints that are in an index.
func pushedVersion(x *xdsupdate.EndpointIndex, name registry.Hostname) uint32 {
	for e := range x.Service(name, ns).All() {
		return e.EndpointPort
	}
	return 0
}

// TestPushNeverReadsAHalfPublishedBatch: registries publish without a pause, each
// push sees services with their own endpoints, and no push is starved.
func TestPushNeverReadsAHalfPublishedBatch(t *testing.T) {
	var registries []*versioned
	var p *xdsupdate.Pusher
	var pushes atomic.Int64
	p = xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {
		services, endpoints := map[registry.Hostname]uint32{}, map[registry.Hostname]uint32{}
		p.Capture(func() {
			for _, v := range registries {
				services[v.name] = v.shown.Load()
			}
			for _, v := range registries {
				endpoints[v.name] = pushedVersion(p.Index(), v.name)
			}
		})
		for name, version := range services {
			if endpoints[name] != version {
				t.Errorf("%s: a push read version %d of the service and %d of its endpoints", name, version, endpoints[name])
			}
		}
		pushes.Inc()
	}, xdsupdate.PusherOptions{DebounceAfter: -1})
	for i := range 4 {
		shard := shardOf(fmt.Sprint("c", i))
		registries = append(registries, &versioned{
			name: registry.Hostname(fmt.Sprint("r", i)), shard: shard, updater: xdsupdate.NewOwners(p).Own(),
		})
	}
	stop := make(chan struct{})
	var publishers, run sync.WaitGroup
	run.Go(func() { p.Run(stop) })
	for _, v := range registries {
		publishers.Go(func() {
			for i := 0; pushes.Load() < 30 && i < 200_000; i++ {
				v.change()
			}
		})
	}
	publishers.Wait()
	if n := pushes.Load(); n < 30 {
		t.Errorf("%d pushes while registries published", n)
	}
	close(stop)
	run.Wait()
}

// TestBatchGoesTogether: a push takes all requests of a batch, even if the first
// of them was due at once.
func TestBatchGoesTogether(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{}, func(p *xdsupdate.Pusher, got *pushes) {
		p.UpdateBatch(func() {
			for _, name := range []string{"a", "b"} {
				p.ConfigUpdate(endpointPush(name))
				time.Sleep(time.Second)
			}
		})
		got.expect(time.Minute, "2s endpoint push of ServiceEntry/default/a,ServiceEntry/default/b (endpoint 2)")
	})
}

// TestBatchDoesNotDelayWhatIsDue: requests that come while a push waits for a
// batch do not start the quiet time anew.
func TestBatchDoesNotDelayWhatIsDue(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{}, func(p *xdsupdate.Pusher, got *pushes) {
		p.ConfigUpdate(fullPush("a"))
		p.UpdateBatch(func() {
			time.Sleep(time.Second)
			p.ConfigUpdate(fullPush("b"))
		})
		got.expect(time.Minute, "1s full push of VirtualService/default/a,VirtualService/default/b (config 2)")
	})
}

// TestBatchesDoNotWaitForOneAnother, and not for pushes that have captured what
// they need.
func TestBatchesDoNotWaitForOneAnother(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{DebounceAfter: -1}, func(p *xdsupdate.Pusher, got *pushes) {
		got.slow = time.Hour
		p.ConfigUpdate(fullPush("a"))
		synctest.Wait()
		got.log = nil
		start := time.Now()
		p.UpdateBatch(func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				p.UpdateBatch(func() {})
			}()
			<-done
		})
		if waited := time.Since(start); waited > 0 {
			got.t.Errorf("batches waited for %v", waited)
		}
	})
}

// TestCaptureHasPrecedence: batches that come while a capture waits for others let
// it go first.
func TestCaptureHasPrecedence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newQuietPusher()
		var order []string
		var wg sync.WaitGroup
		first := make(chan struct{})
		wg.Go(func() { p.UpdateBatch(func() { <-first }) })
		synctest.Wait()
		wg.Go(func() { p.Capture(func() { order = append(order, "capture") }) })
		synctest.Wait()
		wg.Go(func() { p.UpdateBatch(func() { order = append(order, "batch") }) })
		synctest.Wait()
		begun := time.Now()
		close(first)
		wg.Wait()
		if fmt.Sprint(order) != "[capture batch]" {
			t.Errorf("order %q", order)
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("the batch has waited for %v after the capture", waited)
		}
	})
}

// TestLongBatchesDelayNoOthers: one batch waits 1 ms for a capture that waits for a long batch
// of another registry, those after it do not wait, and the capture gets its turn among batches
// without end.
func TestLongBatchesDelayNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newQuietPusher()
		var wg sync.WaitGroup
		wg.Go(func() { p.UpdateBatch(func() { time.Sleep(90 * time.Millisecond) }) })
		synctest.Wait()
		begun := time.Now()
		var captured time.Duration
		wg.Go(func() { p.Capture(func() { captured = time.Since(begun) }) })
		synctest.Wait()
		for range 10 {
			p.UpdateBatch(func() {})
		}
		if waited := time.Since(begun); waited > time.Millisecond {
			t.Errorf("batches have waited for %v", waited)
		}
		wg.Wait()
		if captured != 90*time.Millisecond {
			t.Errorf("captured after %v, want it at the end of the long batch", captured)
		}

		stop := make(chan struct{})
		for i := range 16 { // there is always one of them
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				for {
					select {
					case <-stop:
						return
					default:
						p.UpdateBatch(func() { time.Sleep(16 * time.Millisecond) })
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		begun = time.Now()
		p.Capture(func() { captured = time.Since(begun) })
		close(stop)
		wg.Wait()
		if captured > 200*time.Millisecond {
			t.Errorf("captured after %v", captured)
		}
	})
}

// TestBatchesMayNest, also with two updaters in different orders, while captures
// wait: nothing deadlocks.
func TestBatchesMayNest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, q := newQuietPusher(), newQuietPusher()
		var wg sync.WaitGroup
		for _, u := range []xdsupdate.XDSUpdater{
			xdsupdate.Multi(p, p), xdsupdate.Multi(p, q), xdsupdate.Multi(q, p),
			xdsupdate.Multi(xdsupdate.NewOwners(p).Own(), q, p),
		} {
			wg.Go(func() {
				xdsupdate.UpdateBatch(u, func() {
					time.Sleep(time.Millisecond) // captures come meanwhile
					xdsupdate.UpdateBatch(u, func() { callEverything(u) })
				})
			})
		}
		synctest.Wait()
		var captures atomic.Int32
		for _, p := range []*xdsupdate.Pusher{p, q} {
			wg.Go(func() { p.Capture(func() { captures.Inc() }) })
			synctest.Wait()
		}
		start := time.Now()
		wg.Wait()
		if n := captures.Load(); n != 2 {
			t.Errorf("%d captures, want 2", n)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("nested batches took %v", took)
		}
	})
}

// TestDisturbedCaptureReadsAgain: a batch that a reader waits for is let in, and
// what was read before does not count.
func TestDisturbedCaptureReadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newQuietPusher()
		var state atomic.Int32
		var reads []int32
		p.Capture(func() {
			reads = append(reads, state.Load())
			if len(reads) == 1 {
				done := make(chan struct{})
				go func() {
					defer close(done)
					p.UpdateBatch(func() { state.Inc() })
				}()
				<-done
			}
		})
		if fmt.Sprint(reads) != "[0 1]" {
			t.Errorf("reads %v, want [0 1]", reads)
		}
	})
}

// TestFlushWaitsForBatches: what a batch asks for is part of a Flush that began
// after the request; a handler that runs after the batch may flush.
func TestFlushWaitsForBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &pushes{t: t, start: time.Now()}
		p := xdsupdate.NewPusher(got.push, xdsupdate.PusherOptions{})
		var wg sync.WaitGroup
		wg.Go(func() {
			p.UpdateBatch(func() {
				p.ConfigUpdate(fullPush("a"))
				time.Sleep(time.Second)
			})
			if err := p.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := p.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		got.expect(0, "1s full push of VirtualService/default/a (config 1)")
		wg.Wait()
	})
}

// TestBatchThatPanicsEnds: a program that recovers can go on.
func TestBatchThatPanicsEnds(t *testing.T) {
	p := newQuietPusher()
	for _, call := range []func(func()){p.UpdateBatch, p.Capture} {
		func() {
			defer func() { _ = recover() }()
			call(func() { panic("registry") })
		}()
	}
	ran := 0
	p.UpdateBatch(func() { ran++ })
	p.Capture(func() { ran++ })
	if ran != 2 {
		t.Errorf("%d calls went on, want 2", ran)
	}
}

func newQuietPusher() *xdsupdate.Pusher {
	return xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{})
}

// plain is an updater without abilities, wrapped one that passes those on.
type (
	plain   struct{ xdsupdate.XDSUpdater }
	wrapped struct{ plain }
)

func (w wrapped) Unwrap() xdsupdate.XDSUpdater { return w.XDSUpdater }

// TestWrappersPassAbilitiesOn if they have Unwrap, and only then.
func TestWrappersPassAbilitiesOn(t *testing.T) {
	p := newQuietPusher()
	for name, test := range map[string]struct {
		updater xdsupdate.XDSUpdater
		want    bool
	}{
		"itself":               {p, true},
		"wrapped":              {wrapped{plain{p}}, true},
		"wrapped twice":        {wrapped{plain{wrapped{plain{p}}}}, true},
		"Multi of wrapped":     {xdsupdate.Multi(wrapped{plain{p}}), true},
		"owner":                {xdsupdate.NewOwners(wrapped{plain{p}}).Own(), true},
		"owner of one without": {xdsupdate.NewOwners(plain{p}).Own(), false},
		"without Unwrap":       {plain{p}, false},
		"around one without":   {wrapped{plain{plain{p}}}, false},
		"around nothing":       {wrapped{}, false},
		"no updater":           {nil, false},
		"Multi of one without": {xdsupdate.Multi(plain{p}), false},
	} {
		if _, ok := xdsupdate.As[xdsupdate.EndpointDeltaUpdater](test.updater); ok != test.want {
			t.Errorf("%s: takes deltas: %v, want %v", name, ok, test.want)
		}
		ran := 0
		xdsupdate.UpdateBatch(test.updater, func() { ran++ })
		if ran != 1 {
			t.Errorf("%s: publish ran %d times", name, ran)
		}
	}
	if b, ok := xdsupdate.As[xdsupdate.BatchUpdater](wrapped{plain{p}}); !ok || b != xdsupdate.BatchUpdater(p) {
		t.Error("UpdateBatch of a wrapper does not reach what it wraps")
	}
}
