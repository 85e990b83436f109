// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"runtime"
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
	version uint32
	shard   xdsupdate.ShardKey
	source  xdsupdate.Source
	inbox   xdsupdate.Inbox
}

// change publishes the next version.
func (v *versioned) change() {
	v.version++
	var u xdsupdate.Update
	u.SetServices(&v.source, registry.NewServiceSet(&registry.Service{Hostname: v.name, DefaultAddress: fmt.Sprint(v.version)}))
	u.SvcUpdate(v.shard, v.name, ns, registry.EventUpdate)
	u.EDSUpdate(v.shard, v.name, ns, eps(ep("1.1.1.1", port(v.version))))
	u.ConfigUpdate(fullPush(string(v.name)))
	v.inbox.Begin()
	v.inbox.Commit(&u)
}

func port(number uint32) func(*registry.Endpoint) {
	return func(e *registry.Endpoint) { e.EndpointPort = number }
}

// TestPushNeverReadsAHalfPublishedBatch: registries publish without a pause, each
// push sees services with their own endpoints, and no push is starved, on any number of
// processors.
func TestPushNeverReadsAHalfPublishedBatch(t *testing.T) {
	for _, processors := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			testHalfPublishedBatch(t)
		})
	}
}

func testHalfPublishedBatch(t *testing.T) {
	t.Helper()
	var registries []*versioned
	var pushes atomic.Int64
	var root *xdsupdate.Root
	p := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {
		for _, v := range registries {
			services, _ := root.Services(&v.source)
			var has string
			for e := range root.Endpoints().Service(v.name, ns).All() {
				has = fmt.Sprint(e.EndpointPort)
			}
			if s := services.Get(v.name); s != nil && s.DefaultAddress != has || s == nil && has != "" {
				t.Errorf("%s: a push read the services %v and version %q of its endpoints", v.name, s, has)
			}
		}
		pushes.Inc()
	}, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}, Capture: func(_ *xdsupdate.PushRequest, now *xdsupdate.Root) bool {
		root = now
		return true
	}})
	for i := range 16 {
		registries = append(registries, &versioned{
			name: registry.Hostname(fmt.Sprint("r", i)), shard: shardOf(fmt.Sprint("c", i)), inbox: xdsupdate.NewInbox(xdsupdate.NewWriters(p).New()),
		})
	}
	stop := make(chan struct{})
	var publishers, run sync.WaitGroup
	run.Go(func() { p.Run(stop) })
	for _, v := range registries {
		publishers.Go(func() {
			for i := 0; pushes.Load() < 100 && i < 100_000; i++ {
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

// TestBatchGoesTogether: a push takes all calls of a batch, when the batch ends, though the first
// would be due at once; nothing waits for it.
func TestBatchGoesTogether(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{}, func(p *xdsupdate.Pusher, got *pushes) {
		p.ConfigUpdate(fullPush("v"))
		p.UpdateBatch(func(w xdsupdate.XDSUpdater) {
			for _, name := range []string{"a", "b"} {
				w.ConfigUpdate(endpointPush(name))
				time.Sleep(time.Second)
			}
		})
		got.expect(time.Minute, "100ms full push of VirtualService/default/v (config 1)",
			"2s endpoint push of ServiceEntry/default/a,ServiceEntry/default/b (endpoint 2)")
	})
}

// TestBatchesDoNotWait, neither for one another nor for pushes; they may nest.
func TestBatchesDoNotWait(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}}, func(p *xdsupdate.Pusher, got *pushes) {
		got.slow = time.Hour
		p.ConfigUpdate(fullPush("a"))
		synctest.Wait()
		got.log = nil
		start := time.Now()
		q := newQuietPusher()
		for _, u := range []xdsupdate.XDSUpdater{
			p, xdsupdate.Multi(p, p), xdsupdate.Multi(p, q), xdsupdate.Multi(q, p), xdsupdate.Multi(xdsupdate.NewWriters(p).New(), q, p),
		} {
			xdsupdate.UpdateBatch(u, func(xdsupdate.XDSUpdater) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					xdsupdate.UpdateBatch(u, func(xdsupdate.XDSUpdater) { callEverything(u) })
				}()
				<-done
			})
		}
		if waited := time.Since(start); waited > 0 {
			got.t.Errorf("batches waited for %v", waited)
		}
	})
}

// TestBatchThatPanicsEnds: what it has called counts, and a program that recovers can go on.
func TestBatchThatPanicsEnds(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{}, func(p *xdsupdate.Pusher, got *pushes) {
		func() {
			defer func() { _ = recover() }()
			p.UpdateBatch(func(w xdsupdate.XDSUpdater) {
				w.ConfigUpdate(fullPush("a"))
				panic("registry")
			})
		}()
		got.expect(time.Second, "100ms full push of VirtualService/default/a (config 1)")
		p.UpdateBatch(func(w xdsupdate.XDSUpdater) { w.ConfigUpdate(fullPush("b")) })
		got.expect(time.Second, "1.1s full push of VirtualService/default/b (config 1)")
	})
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
		"itself":                {p, true},
		"wrapped":               {wrapped{plain{p}}, true},
		"wrapped twice":         {wrapped{plain{wrapped{plain{p}}}}, true},
		"Multi of wrapped":      {xdsupdate.Multi(wrapped{plain{p}}), true},
		"writer":                {xdsupdate.NewWriters(wrapped{plain{p}}).New(), true},
		"writer of one without": {xdsupdate.NewWriters(plain{p}).New(), true},
		"without Unwrap":        {plain{p}, false},
		"around one without":    {wrapped{plain{plain{p}}}, false},
		"around nothing":        {wrapped{}, false},
		"no updater":            {nil, false},
		"Multi of one without":  {xdsupdate.Multi(plain{p}), false},
	} {
		if _, ok := xdsupdate.As[xdsupdate.EndpointDeltaUpdater](test.updater); ok != test.want {
			t.Errorf("%s: takes deltas: %v, want %v", name, ok, test.want)
		}
		ran := 0
		xdsupdate.UpdateBatch(test.updater, func(xdsupdate.XDSUpdater) { ran++ })
		if ran != 1 {
			t.Errorf("%s: publish ran %d times", name, ran)
		}
	}
	if b, ok := xdsupdate.As[xdsupdate.BatchUpdater](wrapped{plain{p}}); !ok || b != xdsupdate.BatchUpdater(p) {
		t.Error("UpdateBatch of a wrapper does not reach what it wraps")
	}
}
