// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
)

// Caches with some of the abilities of the one behind them.
type (
	drained struct {
		configstore.ConfigStoreCache
		configstore.Drainer
	}
	flushed struct {
		configstore.ConfigStoreCache
		configstore.Flusher
	}
	watched struct {
		configstore.ConfigStoreCache
		configstore.Watcher
	}
)

func create(t *testing.T, store configstore.ConfigStore, c configstore.Config) {
	t.Helper()
	if _, err := store.Create(c); err != nil {
		t.Fatal(err)
	}
}

// Flush brings everything to the handlers that members had before the call, by
// whichever ability of theirs.
func TestCacheFlush(t *testing.T) {
	for name, as := range map[string]func(*memory.Controller) configstore.ConfigStoreCache{
		"of Flushers":                func(m *memory.Controller) configstore.ConfigStoreCache { return flushed{m, m} },
		"of Watchers that send late": func(m *memory.Controller) configstore.ConfigStoreCache { return watched{m, m} },
	} {
		t.Run(name, func(t *testing.T) {
			m := memory.NewController(memory.Make(schemas("A")))
			c := aggregate.MakeCache(as(m))
			var r storetest.Recorder
			c.RegisterEventHandler(kind("A"), r.Handle)
			create(t, m, object("A", "ns", "x", "1"))
			if err := c.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(r.Calls()); got != 1 {
				t.Errorf("%d events were handled, want 1", got)
			}
		})
	}
}

// Drain brings to the handlers what a member shows that has delivered nothing of it.
func TestCacheDrainReadsWatchers(t *testing.T) {
	m := memory.NewController(memory.Make(schemas("A")))
	c := aggregate.MakeCache(watched{m, m})
	var r storetest.Recorder
	c.RegisterEventHandler(kind("A"), r.Handle)
	create(t, m, object("A", "ns", "x", "1"))
	c.Drain()
	r.Expect(t, "add A ns/x")
}

// failing is a Flusher that fails.
type failing struct{ err error }

func (f failing) Flush(context.Context) error { return f.err }

func TestCacheFlushFails(t *testing.T) {
	cause := errors.New("cause")
	m := memory.NewController(memory.Make(schemas("A")))
	if err := aggregate.MakeCache(flushed{m, failing{cause}}).Flush(t.Context()); !errors.Is(err, cause) {
		t.Errorf("Flush = %v, want the member's error", err)
	}
}

// What members' handlers write while they are drained is handled as well, in
// whichever order the members are, and also if it is all that is new.
func TestCacheDrainContinues(t *testing.T) {
	first, second := memory.NewController(memory.Make(schemas("A"))), memory.NewController(memory.Make(schemas("A")))
	c := aggregate.MakeCache(drained{first, first}, drained{second, second})
	for _, m := range []*memory.Controller{first, second} {
		create(t, m, object("A", "ns", "x", "shadows"))
	}
	c.Drain()
	second.RegisterEventHandler(kind("A"), func(_, _ configstore.Config, e configstore.Event) {
		if e == configstore.EventUpdate {
			create(t, first, object("A", "ns", "y", "1"))
		}
	})
	if _, err := second.Update(object("A", "ns", "x", "changed")); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	if got := value(c.Get(kind("A"), "y", "ns")); got != "1" {
		t.Errorf("after Drain y is %s, want 1", got)
	}
}

// lazy is a registry that sends what it has when it is drained or flushed.
type lazy struct {
	*registrymemory.Registry
	t    *testing.T
	err  error
	host string
}

func (l *lazy) Drain() { set(l.t, l.Registry, service(l.host, "ns")) }

func (l *lazy) Flush(context.Context) error {
	if l.err == nil {
		l.Drain()
	}
	return l.err
}

// Drain and Flush reach the registries, and deliver what a handler left that stopped the
// goroutine that delivered.
func TestControllerDrainAndFlush(t *testing.T) {
	for name, end := range map[string]func(c *aggregate.Controller) error{
		"Drain": func(c *aggregate.Controller) error { c.Drain(); return nil },
		"Flush": func(c *aggregate.Controller) error { return c.Flush(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			c := aggregate.NewController()
			member := &lazy{Registry: newRegistry("Mock", "c1"), t: t, host: "a"}
			c.AddRegistry(given(registry.Simple{Controller: member, ServiceDiscovery: member, ProviderID: "Mock", ClusterID: "c1"}))
			var handled eventLog
			panicking := false
			c.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) {
				if panicking {
					panicking = false
					panic(guard.Defect("once"))
				}
			})
			c.AppendServiceHandler(handled.service)
			if err := end(c); err != nil {
				t.Fatal(err)
			}
			handled.expect(t, "add a 0.0.0.0")
			panicking = true
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic of a handler is lost")
					}
				}()
				set(t, member.Registry, service("b", "ns"))
			}()
			handled.expect(t)
			if err := end(c); err != nil {
				t.Fatal(err)
			}
			handled.expect(t, "add b 0.0.0.0")
		})
	}
}

func TestControllerFlushFails(t *testing.T) {
	cause := errors.New("cause")
	c := aggregate.NewController()
	c.AddRegistry(given(&lazy{Registry: newRegistry("Mock", "c1"), t: t, err: cause}))
	if err := c.Flush(t.Context()); !errors.Is(err, cause) {
		t.Errorf("Flush = %v, want the registry's error", err)
	}
}
