// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// interrupted is an updater whose host changes another service while it is called,
// and then panics; so do its batches.
type interrupted struct {
	xdsupdate.Discard
	change func()
	called []string
}

func (u *interrupted) SvcUpdate(_ xdsupdate.ShardKey, hostname registry.Hostname, _ string, _ registry.Event) {
	u.called = append(u.called, "service "+string(hostname))
	if change := u.change; change != nil {
		u.change = nil
		change()
	}
	panic("SvcUpdate")
}

func (u *interrupted) ConfigUpdate(*xdsupdate.PushRequest) {
	u.called = append(u.called, "push")
	panic("ConfigUpdate")
}

func (u *interrupted) UpdateBatch(publish func(xdsupdate.XDSUpdater)) {
	publish(u)
	panic("UpdateBatch")
}

// A panic of the updater or of a handler costs that call: everything else is called,
// and it is logged with its stack.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	u := &interrupted{}
	r := memory.New(memory.Options{Updater: u, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var handled []registry.Hostname
	r.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { panic("handler") })
	r.AppendServiceHandler(func(_, s *registry.Service, _ registry.Event) { handled = append(handled, s.Hostname) })
	set := func(host registry.Hostname) {
		if err := r.SetService(&registry.Service{Hostname: host, Attributes: registry.ServiceAttributes{Namespace: "ns"}}); err != nil {
			t.Error(err)
		}
	}
	u.change = func() { set("b") }
	set("a")
	if want := []string{"service a", "push", "service b", "push"}; !slices.Equal(u.called, want) {
		t.Errorf("called %v, want %v", u.called, want)
	}
	if want := []registry.Hostname{"a", "b"}; !slices.Equal(handled, want) {
		t.Errorf("handled %v, want %v", handled, want)
	}
	for text, want := range map[string]int{
		`what=updater error="panic: SvcUpdate" registry=Memory`: 2, `error="panic: ConfigUpdate"`: 2,
		`error="panic: UpdateBatch"`: 2, `what="event handler" error="panic: handler" registry=Memory`: 2, "drain_test.go": 8,
	} {
		if n := strings.Count(log.String(), text); n < want || want < 8 && n > want {
			t.Errorf("%d times %s in the log, want %d", n, text, want)
		}
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
