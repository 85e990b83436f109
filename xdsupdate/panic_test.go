// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestPanicOfAPush: a push that panics is made up for by one of everything, later and
// later, until one does not panic; meanwhile pushes go on, and full ones are of
// everything. All panics are in the log.
func TestPanicOfAPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var at []time.Duration
		var seen []string
		begun := time.Now()
		var mended atomic.Bool
		p := xdsupdate.NewPusher(func(r *xdsupdate.PushRequest) {
			at = append(at, time.Since(begun).Round(time.Second))
			seen = append(seen, strings.Fields(r.String())[0])
			if r.Full && !r.Everything() && len(seen) > 1 {
				t.Errorf("push %d is %s", len(seen), r)
			}
			if !mended.Load() {
				panic("boom")
			}
		}, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { p.Run(stop); close(done) }()
		full := &xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey("a", "ns"))}
		p.ConfigUpdate(full)
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 123, 183} // seconds
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(at, want) {
			t.Errorf("pushes at %v, want %v", at, want)
		}
		if n := strings.Count(log.String(), "panic_test.go"); n < len(want) || !strings.Contains(log.String(), "boom") {
			t.Errorf("%d panics in the log, want %d", n, len(want))
		}
		p.ConfigUpdate(full)
		if err := p.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		mended.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		n := len(seen)
		if seen[n-1] != "forced" {
			t.Errorf("pushes %q", seen)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(seen) != n {
			t.Errorf("%d pushes after one that did not panic", len(seen)-n)
		}
		close(stop)
		<-done
	})
}

// TestPanicsOfFunctionsOfAPusher: those who report changes go on.
func TestPanicsOfFunctionsOfAPusher(t *testing.T) {
	var log bytes.Buffer
	p := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{
		Logger:      slog.New(slog.NewTextHandler(&log, nil)),
		ProxyUpdate: func(registry.ClusterID, string) { panic("proxy") },
	})
	p.ProxyUpdate("c1", "10.0.0.1")
	p.RemoveShard(xdsupdate.ShardKey{Cluster: "c1", Provider: "p"})
	for _, want := range []string{`error="panic: proxy" ip=10.0.0.1`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in the log: %s", want, log.String())
		}
	}
}

// exploding panics in each call.
type exploding struct {
	xdsupdate.Discard
	after bool // only after what is published in a batch
}

func (exploding) EDSUpdate(xdsupdate.ShardKey, registry.Hostname, string, []*registry.Endpoint) {
	panic("boom")
}

func (exploding) EDSCacheUpdate(xdsupdate.ShardKey, registry.Hostname, string, []*registry.Endpoint) {
	panic("boom")
}

func (exploding) SvcUpdate(xdsupdate.ShardKey, registry.Hostname, string, registry.Event) {
	panic("boom")
}
func (exploding) ConfigUpdate(*xdsupdate.PushRequest)    { panic("boom") }
func (exploding) ProxyUpdate(registry.ClusterID, string) { panic("boom") }
func (exploding) RemoveShard(xdsupdate.ShardKey)         { panic("boom") }
func (u exploding) UpdateBatch(publish func(xdsupdate.XDSUpdater)) {
	if u.after {
		publish(u)
	}
	panic("boom")
}

// noting notes the calls.
type noting struct {
	xdsupdate.Discard
	calls *[]string
}

func (u noting) add(call string) { *u.calls = append(*u.calls, call) }
func (u noting) EDSUpdate(xdsupdate.ShardKey, registry.Hostname, string, []*registry.Endpoint) {
	u.add("eds")
}

func (u noting) EDSCacheUpdate(xdsupdate.ShardKey, registry.Hostname, string, []*registry.Endpoint) {
	u.add("cache")
}

func (u noting) SvcUpdate(xdsupdate.ShardKey, registry.Hostname, string, registry.Event) {
	u.add("svc")
}
func (u noting) ConfigUpdate(*xdsupdate.PushRequest)    { u.add("config") }
func (u noting) ProxyUpdate(registry.ClusterID, string) { u.add("proxy") }
func (u noting) RemoveShard(xdsupdate.ShardKey)         { u.add("remove") }
func (u noting) UpdateBatch(publish func(xdsupdate.XDSUpdater)) {
	u.add("begin")
	publish(u)
	u.add("end")
}

// TestPanicBehindMulti: an updater that panics does not keep others from the call, and
// the caller learns of it.
func TestPanicBehindMulti(t *testing.T) {
	for _, after := range []bool{false, true} {
		var calls []string
		m := xdsupdate.Multi(exploding{after: after}, noting{calls: &calls}, exploding{after: after})
		shard := xdsupdate.ShardKey{Cluster: "c1", Provider: "p"}
		for want, call := range map[string]func(xdsupdate.XDSUpdater){
			"begin eds end":    func(u xdsupdate.XDSUpdater) { u.EDSUpdate(shard, "a", "ns", nil) },
			"begin cache end":  func(u xdsupdate.XDSUpdater) { u.EDSCacheUpdate(shard, "a", "ns", nil) },
			"begin svc end":    func(u xdsupdate.XDSUpdater) { u.SvcUpdate(shard, "a", "ns", registry.EventAdd) },
			"begin config end": func(u xdsupdate.XDSUpdater) { u.ConfigUpdate(&xdsupdate.PushRequest{}) },
			"begin proxy end":  func(u xdsupdate.XDSUpdater) { u.ProxyUpdate("c1", "10.0.0.1") },
			"begin remove end": func(u xdsupdate.XDSUpdater) { u.RemoveShard(shard) },
			"begin svc config end": func(u xdsupdate.XDSUpdater) {
				xdsupdate.UpdateBatch(u, func(w xdsupdate.XDSUpdater) {
					w.SvcUpdate(shard, "a", "ns", registry.EventAdd)
					w.ConfigUpdate(&xdsupdate.PushRequest{})
				})
			},
		} {
			calls = nil
			p := guard.Call(func() { call(m) })
			if p == nil || !strings.Contains(p.Stack, "exploding") {
				t.Errorf("%s: the caller is told %v", want, p)
			}
			if got := strings.Join(calls, " "); got != want {
				t.Errorf("calls %q, want %q", got, want)
			}
		}
	}
}

// explodingReporter panics.
type explodingReporter struct{}

func (explodingReporter) AddInProgressResource(configstore.Config)    { panic("boom") }
func (explodingReporter) DeleteInProgressResource(configstore.Config) { panic("boom") }

// TestPanicOfAReporter: the push is asked for all the same.
func TestPanicOfAReporter(t *testing.T) {
	for _, event := range []configstore.Event{configstore.EventAdd, configstore.EventDelete} {
		var calls []string
		handle := xdsupdate.ConfigHandler(noting{calls: &calls}, explodingReporter{})
		if p := guard.Call(func() { handle(configstore.Config{}, configstore.Config{}, event) }); p == nil {
			t.Error("the panic is lost")
		}
		if !slices.Equal(calls, []string{"config"}) {
			t.Errorf("%v: calls %q", event, calls)
		}
	}
}

// TestPanicOfAnUpdaterOfServices: the others are asked for the push all the same.
func TestPanicOfAnUpdaterOfServices(t *testing.T) {
	var calls []string
	handle := xdsupdate.ServiceHandler(xdsupdate.Multi(exploding{}, noting{calls: &calls}))
	if p := guard.Call(func() { handle(nil, &registry.Service{Hostname: "a"}, registry.EventAdd) }); p == nil {
		t.Error("the panic is lost")
	}
	if !slices.Equal(calls, []string{"begin", "config", "end"}) {
		t.Errorf("calls %q", calls)
	}
}
