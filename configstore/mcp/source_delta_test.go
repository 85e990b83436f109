// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// deltaOnly are options for ServiceEntries by delta.
func deltaOnly() SourceOptions {
	o := only(istio.ServiceEntry)
	o.Delta = true
	return o
}

// versioned returns a ServiceEntry of a version.
func versioned(name, version string, hosts ...string) configstore.Config {
	c := entry("default", name, hosts...)
	c.ResourceVersion = version
	return c
}

// TestDelta: only objects in the list of removed ones are deleted, and an empty response changes
// nothing.
func TestDelta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, deltaOnly())
		defer end()
		if r := d.openDelta(); r.GetNode() == nil || r.GetTypeUrl() != serviceEntryURL || len(r.GetInitialResourceVersions()) > 0 ||
			len(r.GetResourceNamesSubscribe()) != 1 || r.GetResourceNamesSubscribe()[0] != "*" {
			t.Errorf("request %v", r)
		}
		for i, tt := range []struct {
			response *discovery.DeltaDiscoveryResponse
			want     string
		}{
			{delta(t, "1", nil, versioned("a", "1"), versioned("b", "1")), "a b"},
			{delta(t, "2", nil, versioned("c", "1")), "a b c"},
			{delta(t, "3", nil), "a b c"},
			{delta(t, "4", []string{"default/a", "default/never", "garbage"}), "b c"},
			{delta(t, "5", []string{"default/a", "default/b"}, versioned("a", "2")), "a c"},
		} {
			if r := d.tell(tt.response); r.GetErrorDetail() != nil || r.GetResponseNonce() != tt.response.GetNonce() {
				t.Errorf("reply %v", r)
			}
			if got := names(store); got != tt.want {
				t.Errorf("%d: the store has %q, want %q", i, got, tt.want)
			}
		}
		synctest.Wait()
		if s := source.Status(); !s.Delta || s.Stale() || s.Kinds[0].Objects != 2 {
			t.Errorf("status %+v", s)
		}
	})
}

// TestDeltaReconnect: the next stream begins with the source's valid objects, and ends with the
// server's state of them.
func TestDeltaReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, deltaOnly())
		defer end()
		d.openDelta()
		d.tell(delta(t, "1", nil, versioned("a", "a1"), versioned("b", "b1"), versioned("c", "c1"), versioned("d", "d1")))
		bad := delta(t, "2", []string{"default/d"}, versioned("b", "b2"), versioned("e", "e1"))
		for _, r := range bad.GetResources() {
			r.Resource = &anypb.Any{TypeUrl: resourceTypeURL, Value: r.GetResource().GetValue()[:20]}
		}
		r := d.tell(bad)
		if text := r.GetErrorDetail().GetMessage(); !strings.Contains(text, "ServiceEntry default/b: resource: ") ||
			!strings.Contains(text, "ServiceEntry default/e: resource: ") || !strings.HasPrefix(text, "refused resources: 2") {
			t.Errorf("reply %v", r)
		}
		// A later response is answered for itself.
		if r := d.tell(delta(t, "3", nil, versioned("c", "c2", "new.example.com"))); r.GetErrorDetail() != nil {
			t.Errorf("reply %v", r)
		}
		synctest.Wait()
		if len(source.Report().Errors) != 2 || names(store) != "a b c" {
			t.Errorf("report %v, the store has %q", messages(source), names(store))
		}
		d.end()
		want := map[string]string{"default/a": "a1", "default/b": "b1", "default/c": "c2"}
		if r := d.openDelta(); !maps.Equal(r.GetInitialResourceVersions(), want) || r.GetNode() == nil {
			t.Errorf("request %v", r)
		}
		if got := names(store); got != "a b c" {
			t.Errorf("the store has %q", got)
		}
		d.tell(delta(t, "1", []string{"default/a"}, versioned("b", "b2"), versioned("e", "e1")))
		synctest.Wait()
		if len(source.Report().Errors) != 0 || names(store) != "b c e" || source.Status().Stale() {
			t.Errorf("report %v, the store has %q", messages(source), names(store))
		}
	})
}

// TestDeltaWithoutAnything: a server that has lost its content lists all of it as removed when a
// stream begins. The removal is held back as an empty response is in SotW, except for objects that
// come back.
func TestDeltaWithoutAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, deltaOnly())
		defer end()
		all := []string{"default/a", "default/b", "default/c"}
		again := func() {
			t.Helper()
			d.tell(delta(t, "1", nil, versioned("a", "1"), versioned("b", "1"), versioned("c", "1")))
			d.end()
			d.openDelta()
			if r := d.tell(delta(t, "2", append(all, "default/a", "default/never"))); r.GetErrorDetail() != nil {
				t.Errorf("reply %v", r)
			}
			synctest.Wait()
			if s := source.Status(); !s.Stale() || !s.Kinds[0].Held || names(store) != "a b c" {
				t.Errorf("status %+v, the store has %q", s, names(store))
			}
		}
		expect := func(want string, held bool) {
			t.Helper()
			synctest.Wait()
			if s := source.Status(); s.Stale() != held || s.Kinds[0].Held != held || names(store) != want {
				t.Errorf("status %+v, the store has %q, want %q", s, names(store), want)
			}
		}
		d.openDelta()
		again()
		time.Sleep(9 * time.Second)
		expect("a b c", true)
		time.Sleep(time.Second)
		expect("", false)

		again() // it fills up bit by bit
		d.tell(delta(t, "3", nil, versioned("a", "1")))
		time.Sleep(5 * time.Second)
		expect("a b c", true)
		d.tell(delta(t, "4", []string{"default/c"}, versioned("d", "1"))) // said once more
		expect("a b d", true)
		d.tell(delta(t, "5", nil, versioned("b", "2", "new.example.com")))
		expect("a b d", false)
		d.tell(delta(t, "6", []string{"default/a", "default/b", "default/d"})) // later it counts at once
		expect("", false)

		again() // a stream that ends before
		d.end()
		if r := d.openDelta(); len(r.GetInitialResourceVersions()) != 3 {
			t.Errorf("request %v", r)
		}
		time.Sleep(time.Minute)
		d.tell(delta(t, "7", []string{"default/c"}))
		expect("a b", false)
	})
}

// TestDeltaNames: the object in a resource must have the name of the resource.
func TestDeltaNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, deltaOnly())
		defer end()
		d.openDelta()
		d.tell(delta(t, "1", nil, versioned("a", "1"), versioned("b", "1")))
		for _, tt := range []struct {
			name     string
			resource *anypb.Any
			text     string
		}{
			{"default/a", encoded(t, entry("default", "b", "x.example.com")), `ServiceEntry default/a: metadata.name: must be that of the resource, is "default/b"`},
			{"default/a", nil, `ServiceEntry default/a: resource: `},
			{"default/a", &anypb.Any{TypeUrl: "other"}, `ServiceEntry default/a: resource: `},
			{"a", encoded(t, entry("default", "a")), `ServiceEntry in resource 1: name: must be "namespace/name", is "a"`},
		} {
			response := &discovery.DeltaDiscoveryResponse{TypeUrl: serviceEntryURL, Nonce: "2", Resources: []*discovery.Resource{
				{Name: tt.name, Resource: tt.resource},
			}}
			if r := d.tell(response); !strings.Contains(r.GetErrorDetail().GetMessage(), tt.text) {
				t.Errorf("reply %v", r)
			}
			if store.Revision() != 2 {
				t.Errorf("%s: it is written", tt.text)
			}
		}
		// Without a name, the name in the object is used.
		response := delta(t, "3", nil, versioned("c", "1"))
		response.Resources[0].Name = ""
		if r := d.tell(response); r.GetErrorDetail() != nil || names(store) != "a b c" {
			t.Errorf("reply %v, the store has %q", r, names(store))
		}
		d.tell(delta(t, "4", nil, versioned("a", "2")))
		synctest.Wait()
		if errs := source.Report().Errors; len(errs) != 1 || errs[0].Object.Name != "" {
			t.Errorf("report %v", errs)
		}
	})
}

// TestNoDelta: a server that does not speak delta is asked in SotW, at once.
func TestNoDelta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d := &driver{refused: func(n int) error {
			if n < 9 {
				return status.Error(codes.Unimplemented, "nothing is here yet")
			}
			return nil
		}}
		d.init(t)
		source, end := d.run(store, deltaOnly())
		defer end()
		time.Sleep(10 * time.Second)
		if s := source.Status(); !s.Stale() || s.Failures > 6 {
			t.Errorf("status %+v", s)
		}
		// Delta and SotW take turns.
		d.openDelta()
		d.tell(delta(t, "1", nil, versioned("a", "1")))
		if got := names(store); got != "a" {
			t.Errorf("the store has %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d := &driver{noDelta: true}
		d.init(t)
		source, end := d.run(store, deltaOnly())
		defer end()
		d.open(1)
		d.say("1", entries(t, "a")...)
		synctest.Wait()
		if s := source.Status(); s.Delta || s.Stale() || names(store) != "a" {
			t.Errorf("status %+v, the store has %q", s, names(store))
		}
		d.end()
		d.open(1)
		if d.opened.Load() != 2 {
			t.Errorf("%d streams", d.opened.Load())
		}
	})
}
