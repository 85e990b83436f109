// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// interrupted is an updater whose host changes another service while it is called,
// and then panics.
type interrupted struct {
	xdsupdate.Discard
	change func()
	called []registry.Hostname
}

func (u *interrupted) SvcUpdate(_ xdsupdate.ShardKey, hostname registry.Hostname, _ string, _ registry.Event) {
	u.called = append(u.called, hostname)
	if change := u.change; change != nil {
		u.change = nil
		change()
		panic("once")
	}
}

func panicking(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("the panic is lost")
		}
	}()
	f()
}

// Drain and Flush go on where an updater or a handler that panicked has left off.
func TestDrainAndFlush(t *testing.T) {
	for name, end := range map[string]func(r *memory.Registry) error{
		"Drain": func(r *memory.Registry) error { r.Drain(); return nil },
		"Flush": func(r *memory.Registry) error { return r.Flush(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			u := &interrupted{}
			r := memory.New(memory.Options{Updater: u})
			var handled []registry.Hostname
			panics := false
			r.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) {
				if panics {
					panics = false
					panic("once")
				}
			})
			r.AppendServiceHandler(func(_, s *registry.Service, _ registry.Event) { handled = append(handled, s.Hostname) })
			set := func(host registry.Hostname) {
				if err := r.SetService(&registry.Service{Hostname: host, Attributes: registry.ServiceAttributes{Namespace: "ns"}}); err != nil {
					t.Error(err)
				}
			}
			expect := func(when string, calls, events int) {
				t.Helper()
				if len(u.called) != calls || len(handled) != events {
					t.Errorf("%s the updater was called for %v, handlers for %v, want %d and %d", when, u.called, handled, calls, events)
				}
			}
			u.change = func() { set("b") }
			panicking(t, func() { set("a") })
			expect("after the updater's panic", 1, 0)
			if err := end(r); err != nil {
				t.Fatal(err)
			}
			expect("afterwards", 2, 1)
			panics = true
			panicking(t, func() { set("c") })
			expect("after a handler's panic", 3, 1)
			if err := end(r); err != nil {
				t.Fatal(err)
			}
			expect("in the end", 3, 2)
		})
	}
}

// An endpoint is found by its addresses in any order.
func TestEndpointIsFoundByItsAddresses(t *testing.T) {
	for _, addresses := range [][]string{{"10.0.0.1", "fd00::1"}, {"10.0.0.1", "10.0.0.2", "fd00::1"}} {
		r := memory.New()
		if err := r.SetService(&registry.Service{
			Hostname: "a", Ports: []*registry.Port{{Name: "http", Number: 80}}, Attributes: registry.ServiceAttributes{Namespace: "ns"},
		}); err != nil {
			t.Fatal(err)
		}
		given := &registry.Endpoint{Addresses: addresses, EndpointPort: 80, ServicePort: 80, ServicePortName: "http"}
		turned := *given
		turned.Addresses = append(append([]string(nil), addresses[1:]...), addresses[0])
		for _, e := range []*registry.Endpoint{given, &turned} {
			if err := r.AddEndpoint("a", "ns", e); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(r.InstancesByPort(r.GetService("a"), 80)); got != 1 {
			t.Errorf("%v and %v are %d endpoints, want 1", addresses, turned.Addresses, got)
		}
		if err := r.RemoveEndpoint("a", "ns", &turned); err != nil {
			t.Error(err)
		}
	}
}
