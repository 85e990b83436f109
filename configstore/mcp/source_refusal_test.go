// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcp "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// bad returns resources of default/b that are refused, by the field that the text names.
func bad(t *testing.T) map[string]*anypb.Any {
	t.Helper()
	named := &mcp.Metadata{Name: "default/b"}
	invalid := entry("default", "b")
	invalid.Spec.(*networking.ServiceEntry).Ports[0].Number = 70000
	good := encoded(t, entry("default", "b"))
	return map[string]*anypb.Any{
		"spec.ports[0].number": encoded(t, invalid),
		"body: is required":    pack(t, &mcp.Resource{Metadata: named}),
		"body: must be a istio.networking.v1alpha3.ServiceEntry": pack(t, &mcp.Resource{Metadata: named, Body: pack(t, &networking.Gateway{})}),
		"resource: ": {TypeUrl: resourceTypeURL, Value: good.GetValue()[:len(good.GetValue())-3]},
	}
}

// TestBadObject: an invalid object affects only itself and keeps its last good state, also in a
// SotW response; the NACK names object and field, and the rest of the response is applied.
func TestBadObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		for field, resource := range bad(t) {
			// New: it is not stored. The version that is acknowledged is the last good one.
			d.say("1", entries(t, "a")...)
			r := d.say("2", append(entries(t, "a", "c"), resource)...)
			text := r.GetErrorDetail().GetMessage()
			if r.GetVersionInfo() != "1" || r.GetResponseNonce() != "n2" || !strings.Contains(text, "ServiceEntry default/b") || !strings.Contains(text, field) {
				t.Errorf("%s: reply %v", field, r)
			}
			if got := names(store); got != "a c" {
				t.Errorf("%s: the store has %q", field, got)
			}
			// Known: it keeps its state.
			d.say("3", entries(t, "a", "b", "c")...)
			before := store.Get(istio.ServiceEntry, "b", "default")
			if r := d.say("4", append(entries(t, "c", "d"), resource)...); r.GetErrorDetail() == nil || r.GetVersionInfo() != "3" {
				t.Errorf("%s: reply %v", field, r)
			}
			synctest.Wait()
			if got := names(store); got != "b c d" || store.Get(istio.ServiceEntry, "b", "default") != before {
				t.Errorf("%s: the store has %q", field, got)
			}
			errs := source.Report().Errors
			if len(errs) != 1 || !errs[0].Kept || errs[0].Object != before.Key() || !strings.Contains(errs[0].Error(), field) {
				t.Errorf("%s: report %v", field, errs)
			}
			// The same once more is as bad. When it is gone, it is gone.
			if r := d.say("5", append(entries(t, "c"), resource)...); r.GetErrorDetail() == nil {
				t.Errorf("%s: reply %v", field, r)
			}
			if r := d.say("6", entries(t, "c")...); r.GetErrorDetail() != nil || r.GetVersionInfo() != "6" {
				t.Errorf("%s: reply %v", field, r)
			}
			synctest.Wait()
			if got := names(store); got != "c" || len(source.Report().Errors) != 0 {
				t.Errorf("%s: the store has %q, the report %v", field, got, messages(source))
			}
		}
	})
}

// TestUnnamedResource: a resource with an unreadable name may be any missing object.
func TestUnnamedResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, resource := range []*anypb.Any{
			nil,
			{},
			{TypeUrl: resourceTypeURL, Value: []byte("garbage")},
			pack(t, &networking.ServiceEntry{}),
			pack(t, &mcp.Resource{Body: pack(t, &networking.ServiceEntry{})}),
			pack(t, &mcp.Resource{Metadata: &mcp.Metadata{}, Body: pack(t, &networking.ServiceEntry{})}),
			pack(t, &mcp.Resource{Metadata: &mcp.Metadata{Name: "b"}, Body: pack(t, &networking.ServiceEntry{})}),
		} {
			store := newStore()
			d, source, end := drive(t, store, only(istio.ServiceEntry))
			d.open(1)
			d.say("1", entries(t, "a", "b")...)
			r := d.say("2", append(entries(t, "c"), resource)...)
			if text := r.GetErrorDetail().GetMessage(); r.GetVersionInfo() != "1" || !strings.Contains(text, "ServiceEntry in resource 2: ") {
				t.Errorf("%v: reply %v", resource, r)
			}
			synctest.Wait()
			if got := names(store); got != "a b c" {
				t.Errorf("%v: the store has %q", resource, got)
			}
			if errs := source.Report().Errors; len(errs) != 1 || errs[0].Resource != 2 || errs[0].Object.Name != "" {
				t.Errorf("%v: report %v", resource, errs)
			}
			d.say("3", entries(t, "c")...)
			synctest.Wait()
			if got := names(store); got != "c" || len(source.Report().Errors) != 0 {
				t.Errorf("%v: the store has %q, the report %v", resource, got, messages(source))
			}
			end()
		}
	})
}

// TestDuplicate: of two resources of one name none counts.
func TestDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		one, other := encoded(t, entry("default", "a")), encoded(t, entry("default", "a", "other.example.com"))
		d.say("1", one, proto.CloneOf(one))
		before := store.Get(istio.ServiceEntry, "a", "default")
		for _, both := range [][]*anypb.Any{{one, other}, {other, one}, {one, other, one}} {
			if r := d.say("2", both...); !strings.Contains(r.GetErrorDetail().GetMessage(), "ServiceEntry default/a: "+ErrDuplicate.Error()) {
				t.Errorf("reply %v", r)
			}
			synctest.Wait()
			if store.Get(istio.ServiceEntry, "a", "default") != before || !errors.Is(source.Report().Errors[0], ErrDuplicate) {
				t.Error("one of them counts")
			}
		}
		d.say("3", one)
		synctest.Wait()
		if store.Revision() != 1 || len(source.Report().Errors) > 0 {
			t.Errorf("revision %d, report %v", store.Revision(), messages(source))
		}
	})
}

// TestRefusalIsBounded: a text of a million bad objects, with long names, is short.
func TestRefusalIsBounded(t *testing.T) {
	t.Parallel()
	var errs []*Error
	for range 1000 {
		errs = append(errs, &Error{
			Object: configstore.ConfigKey{Kind: istio.ServiceEntry, Name: strings.Repeat("\xff", 1000)},
			Err:    fieldErrorf("body", "%s", strings.Repeat("x", 10000)),
		})
	}
	errs = append(errs, &Error{Err: ErrNotOwned})
	text := refusalText(errs)
	if len(text) > 10000 || !strings.HasPrefix(text, "refused resources: 1000: ServiceEntry ") || !strings.HasSuffix(text, "; and 980 more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	if text := refusalText(errs[1000:]); text != "" {
		t.Errorf("text %q for what only the store refuses", text)
	}
}

// TestEqualRefusalsSlowDown: a server that answers a NACK with the same again is not
// asked as fast as the network is.
func TestEqualRefusalsSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, end := drive(t, newStore(), only(istio.ServiceEntry))
		defer end()
		d.open(1)
		resource := bad(t)["body: is required"]
		var waits []time.Duration
		for range 12 {
			start := time.Now()
			if r := d.say("1", resource); r.GetErrorDetail() == nil {
				t.Fatalf("reply %v", r)
			}
			waits = append(waits, time.Since(start))
		}
		if waits[0] != 0 || waits[1] < 200*time.Millisecond || waits[11] < 30*time.Second || waits[11] > 45*time.Second {
			t.Errorf("waits %v", waits)
		}
		start := time.Now()
		if r := d.say("2", entries(t, "a")...); r.GetErrorDetail() != nil || time.Since(start) != 0 {
			t.Errorf("reply %v after %v", r, time.Since(start))
		}
	})
}

// TestEqualRefusals: the NACK of several objects has the same text each time, regardless of their
// order, so that it is delayed as that of one object is.
func TestEqualRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, end := drive(t, newStore(), only(istio.ServiceEntry))
		defer end()
		d.open(1)
		var resources []*anypb.Any
		for i := range 50 {
			resources = append(resources, pack(t, &mcp.Resource{Metadata: &mcp.Metadata{Name: fmt.Sprint("default/bad", i)}}))
		}
		start, said := time.Now(), map[string]bool{}
		for range 12 {
			said[d.say("1", resources...).GetErrorDetail().GetMessage()] = true
			slices.Reverse(resources)
		}
		if len(said) != 1 || time.Since(start) < 30*time.Second {
			t.Errorf("%d texts in %v", len(said), time.Since(start))
		}
	})
}
