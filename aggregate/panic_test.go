// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	memoryregistry "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// A panic of a handler of a cache costs that call, in Run as well.
func TestPanicOfAHandlerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		member := memory.NewController(memory.Make(schemas("B")))
		cache := aggregate.MakeWriteableCache([]configstore.ConfigStoreCache{member}, member,
			aggregate.CacheOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var handled []string
		cache.RegisterEventHandler(kind("B"), func(_, curr configstore.Config, _ configstore.Event) { panic(curr.Name) })
		cache.RegisterEventHandler(kind("B"), func(_, curr configstore.Config, _ configstore.Event) {
			handled = append(handled, curr.Name)
		})
		stop := make(chan struct{})
		go cache.Run(stop)
		for _, name := range []string{"one", "two"} {
			if _, err := cache.Create(object("B", "a", name, "1")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		close(stop)
		synctest.Wait()
		expect(t, "handled", strings.Join(handled, " "), "one two")
		for _, want := range []string{
			`what="event handler" error="panic: one" events=1 event=add object="B a/one"`, `error="panic: two"`, "panic_test.go",
		} {
			if strings.Count(log.String(), want) == 0 {
				t.Errorf("no %s in the log: %s", want, log.String())
			}
		}
	})
}

// A panic of a handler of a controller costs that call.
func TestPanicOfAServiceHandlerIsKept(t *testing.T) {
	var log bytes.Buffer
	c := aggregate.NewController(aggregate.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var handled eventLog
	c.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { panic("handler") })
	c.AppendServiceHandler(handled.service)
	r := newRegistry("Mock", "c1")
	c.AddRegistry(given(r))
	set(t, r, service("a", "ns"))
	handled.expect(t, "add a 0.0.0.0")
	if want := `what="event handler" error="panic: handler" cluster=c1 event=add service=a`; strings.Count(log.String(), want) != 1 {
		t.Errorf("no %s in the log: %s", want, log.String())
	}
}

// Run does not wait for its members before it lets a defect through.
func TestDefectReachesTheCallerOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.Options{})
		w.cache.RegisterEventHandler(kind("B"), func(_, curr configstore.Config, _ configstore.Event) {
			if curr.Name == "bad" {
				panic(guard.Defect("a mistake"))
			}
		})
		stop := make(chan struct{})
		defer close(stop)
		got := make(chan any, 1)
		go func() {
			defer func() { got <- recover() }()
			w.cache.Run(stop)
		}()
		if _, err := w.members[0].Create(object("B", "a", "bad", "1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case v := <-got:
			if v != guard.Defect("a mistake") {
				t.Errorf("Run panicked with %v", v)
			}
		default:
			t.Error("Run goes on after a defect")
		}
		// Nothing is locked: who drives it next goes on.
		if _, err := w.members[0].Create(object("B", "a", "good", "1")); err != nil {
			t.Fatal(err)
		}
		w.cache.Drain()
		if w.cache.Get(kind("B"), "good", "a") == nil {
			t.Error("what is written after the panic cannot be read")
		}
	})
}

// faulty is a registry of which every part panics that the Controller calls on its own
// goroutines, and an updater that panics in each call.
type faulty struct{ *memoryregistry.Registry }

func (faulty) Run(<-chan struct{}) { panic("Run") }
func (faulty) HasSynced() bool     { panic("HasSynced") }

// shardUpdater notes the calls that remove endpoints of shards, and panics in those for
// one shard.
type shardUpdater struct {
	xdsupdate.Discard
	bad   registry.ClusterID
	calls []string
}

func (u *shardUpdater) note(call string, shard xdsupdate.ShardKey) {
	u.calls = append(u.calls, call+" "+string(shard.Cluster))
	if shard.Cluster == u.bad {
		panic(call)
	}
}

func (u *shardUpdater) RemoveShard(shard xdsupdate.ShardKey) { u.note("RemoveShard", shard) }

func (u *shardUpdater) EDSUpdate(
	shard xdsupdate.ShardKey, hostname registry.Hostname, _ string, endpoints []*registry.Endpoint,
) {
	if len(endpoints) == 0 {
		u.note("empty "+string(hostname), shard)
	}
}

// A registry that writes to several shards: a panic of the updater for one of them
// does not keep the others from being pruned and removed, nor other services.
func TestPanicOfOneShard(t *testing.T) {
	clusters := []registry.ClusterID{"c1", "c2", "c3"}
	for _, bad := range clusters {
		var log bytes.Buffer
		updater := &shardUpdater{bad: bad}
		c := aggregate.NewController(aggregate.Options{Updater: updater, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		create := func(hosts ...registry.Hostname) func(u xdsupdate.XDSUpdater) registry.Instance {
			return func(u xdsupdate.XDSUpdater) registry.Instance {
				for _, cluster := range clusters {
					for _, host := range hosts {
						shard := xdsupdate.ShardKey{Cluster: cluster, Provider: "Mock"}
						u.EDSUpdate(shard, host, "ns", []*registry.Endpoint{endpointOn("1.1.1.1")})
					}
				}
				return newRegistry("Mock", "c1")
			}
		}
		c.AddRegistry(create("a", "b", "c"))
		c.UpdateRegistry(create("c"))
		c.DeleteRegistry("c1", "Mock")
		for _, call := range []string{"empty a", "empty b", "RemoveShard"} {
			for _, cluster := range clusters {
				if !slices.Contains(updater.calls, call+" "+string(cluster)) {
					t.Errorf("%s panics: no %s of %s, only %q", bad, call, cluster, updater.calls)
				}
			}
		}
		for _, call := range []string{"empty a", "RemoveShard"} {
			if want := `what=updater error="panic: ` + call + `" provider=Mock`; !strings.Contains(log.String(), want) {
				t.Errorf("no %s in the log: %s", want, log.String())
			}
		}
	}
}

type faultyUpdater struct{ xdsupdate.Discard }

func (faultyUpdater) RemoveShard(xdsupdate.ShardKey)          { panic("RemoveShard") }
func (faultyUpdater) ConfigUpdate(req *xdsupdate.PushRequest) { panic("ConfigUpdate") }

// A panic of a registry in what the Controller calls, or of the updater, ends neither
// Run nor what registries come or go by.
func TestPanicsOfARegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := aggregate.NewController(aggregate.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		c.AttachUpdater(faultyUpdater{})
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { c.Run(stop) })
		synctest.Wait()
		r := faulty{newRegistry("Mock", "c1")}
		set(t, r.Registry, service("a", "ns"))
		c.AddRegistryAndRun(func(xdsupdate.XDSUpdater) registry.Instance { return r }, nil)
		synctest.Wait()
		expect(t, "services", len(c.Services()), 1)
		c.UpdateRegistry(func(xdsupdate.XDSUpdater) registry.Instance { return faulty{newRegistry("Mock", "c1")} })
		synctest.Wait()
		expect(t, "services of the successor", len(c.Services()), 0)
		expect(t, "deleted", c.DeleteRegistry("c1", "Mock"), true)
		close(stop)
		running.Wait()
		for _, want := range []string{
			`what="Run of a registry" error="panic: Run" provider=Mock cluster=c1`, `what="HasSynced of a registry"`,
			`what=updater error="panic: ConfigUpdate"`, `what=updater error="panic: RemoveShard"`,
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %s in the log: %s", want, log.String())
			}
		}
	})
}
