// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

func newStore(t *testing.T, schemas configstore.Schemas) *memory.Store {
	t.Helper()
	return memory.Make(schemas, memory.Options{DetectMutations: true})
}

func entry(hosts ...string) *networking.ServiceEntry {
	return &networking.ServiceEntry{
		Hosts:      hosts,
		Ports:      []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Resolution: networking.ServiceEntry_DNS,
	}
}

func TestTypedReadsAndWrites(t *testing.T) {
	store := newStore(t, istio.Schemas())
	entries := configstore.Typed[*networking.ServiceEntry](store)
	if got, ok := entries.Get("a", "ns1"); ok {
		t.Fatalf("Get of nothing = %v", got)
	}

	created := configstore.NewConfig("a", "ns1", entry("a.example.com"))
	created.Labels = map[string]string{"team": "x"}
	revision, err := entries.Create(created)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := entries.Get("a", "ns1")
	if !ok || got.ResourceVersion != revision || got.Spec.Hosts[0] != "a.example.com" ||
		got.Labels["team"] != "x" || got.GroupVersionKind != istio.ServiceEntry {
		t.Fatalf("Get = %+v, %v; want what was created, with revision %q", got, ok, revision)
	}
	if untyped := store.Get(istio.ServiceEntry, "a", "ns1"); !untyped.Equal(got.Config()) {
		t.Errorf("Config() = %v, want %v", got.Config(), *untyped)
	}

	changed := got.Clone()
	changed.Spec.Hosts = []string{"b.example.com"}
	if _, err := entries.Update(changed); err != nil {
		t.Fatal(err)
	}
	if _, err := entries.Update(changed); !errors.Is(err, configstore.ErrConflict) {
		t.Errorf("Update from an old version = %v, want a conflict", err)
	}
	if got.Spec.Hosts[0] != "a.example.com" {
		t.Error("changing the clone changed the original")
	}

	status := configstore.NewConfig[*networking.ServiceEntry]("a", "ns1", nil)
	status.Status = &networking.ServiceEntryStatus{ObservedGeneration: 2}
	if _, err := entries.UpdateStatus(status); err != nil {
		t.Fatal(err)
	}
	got, _ = entries.Get("a", "ns1")
	if !proto.Equal(got.Status, status.Status) || got.Spec.Hosts[0] != "b.example.com" {
		t.Errorf("after UpdateStatus: %+v", got)
	}

	if err := entries.Delete("a", "ns1", &revision); !errors.Is(err, configstore.ErrConflict) {
		t.Errorf("Delete of an old version = %v, want a conflict", err)
	}
	if err := entries.Delete("a", "ns1", nil); err != nil {
		t.Error(err)
	}
	if err := entries.Delete("a", "ns1", nil); !errors.Is(err, configstore.ErrNotFound) {
		t.Errorf("Delete of nothing = %v, want not found", err)
	}
}

func TestTypedLists(t *testing.T) {
	store := newStore(t, istio.Schemas())
	entries := configstore.Typed[*networking.ServiceEntry](store)
	if got := entries.List(configstore.NamespaceAll); got != nil {
		t.Errorf("List of nothing = %v, want nil", got)
	}
	for _, key := range []string{"ns2/a", "ns1/b", "ns1/a"} {
		namespace, name, _ := strings.Cut(key, "/")
		if _, err := entries.Create(configstore.NewConfig(name, namespace, entry(name+".example.com"))); err != nil {
			t.Fatal(err)
		}
	}
	keys := func(list []configstore.ConfigOf[*networking.ServiceEntry]) []string {
		var out []string
		for _, c := range list {
			out = append(out, c.Namespace+"/"+c.Name+" "+c.Spec.Hosts[0])
		}
		return out
	}
	all := []string{"ns1/a a.example.com", "ns1/b b.example.com", "ns2/a a.example.com"}
	if diff := cmp.Diff(all, keys(entries.List(configstore.NamespaceAll))); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all[:2], keys(slices.Collect(entries.Select("ns1", nil)))); diff != "" {
		t.Errorf("Select (-want +got):\n%s", diff)
	}
	for range entries.Select(configstore.NamespaceAll, nil) {
		break // must be possible
	}
}

// TestTypedKindOfTheViewWins: Meta may come from elsewhere, another kind even.
func TestTypedKindOfTheViewWins(t *testing.T) {
	entries := configstore.Typed[*networking.ServiceEntry](newStore(t, istio.Schemas()))
	c := configstore.NewConfig("a", "ns", entry("a.example.com"))
	c.GroupVersionKind = istio.Gateway
	if _, err := entries.Create(c); err != nil {
		t.Fatal(err)
	}
	if got, _ := entries.Get("a", "ns"); got.GroupVersionKind != istio.ServiceEntry {
		t.Errorf("stored as %s", got.GroupVersionKind)
	}
}

func TestTypedNilSpecIsInvalid(t *testing.T) {
	entries := configstore.Typed[*networking.ServiceEntry](newStore(t, istio.Schemas()))
	_, err := entries.Create(configstore.NewConfig[*networking.ServiceEntry]("a", "ns", nil))
	if !errors.Is(err, configstore.ErrInvalid) {
		t.Errorf("Create = %v, want invalid", err)
	}
}

func TestTypedConstructorPanics(t *testing.T) {
	custom := func(kinds ...string) configstore.Schemas {
		b := configstore.NewSchemasBuilder()
		for _, kind := range kinds {
			b.MustAdd(configstore.Schema{GroupVersionKind: customKind(kind), Spec: &structpb.Struct{}})
		}
		return b.Build()
	}
	tests := []struct {
		name      string
		construct func()
		want      string
	}{
		{
			name:      "no kind of the type",
			construct: func() { configstore.Typed[*structpb.Struct](newStore(t, istio.Schemas())) },
			want:      "no kind with specs of type *structpb.Struct, or several",
		},
		{
			name:      "several kinds of the type",
			construct: func() { configstore.Typed[*structpb.Struct](newStore(t, custom("A", "B"))) },
			want:      "no kind with specs of type *structpb.Struct, or several",
		},
		{
			name: "two kinds",
			construct: func() {
				configstore.Typed[*structpb.Struct](newStore(t, custom("A", "B")), customKind("A"), customKind("B"))
			},
			want: "more than one kind",
		},
		{
			name:      "unknown kind",
			construct: func() { configstore.Typed[*structpb.Struct](newStore(t, custom("A")), customKind("B")) },
			want:      "no kind example.com/v1/B",
		},
		{
			name:      "kind of another type",
			construct: func() { configstore.Typed[*wrapperspb.StringValue](newStore(t, custom("A")), customKind("A")) },
			want:      "specs of example.com/v1/A have the type *structpb.Struct, not *wrapperspb.StringValue",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) {
					t.Errorf("panic with %q, want one with %q", got, tt.want)
				}
			}()
			tt.construct()
		})
	}
}

func customKind(kind string) configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}
}

func TestTypedKindOfSeveral(t *testing.T) {
	schemas := configstore.NewSchemasBuilder().
		MustAdd(configstore.Schema{GroupVersionKind: customKind("A"), Spec: &structpb.Struct{}}).
		MustAdd(configstore.Schema{GroupVersionKind: customKind("B"), Aliases: []string{"v1beta1"}, Spec: &structpb.Struct{}}).
		Build()
	store := newStore(t, schemas)
	alias := configstore.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "B"}
	b := configstore.Typed[*structpb.Struct](store, alias)
	if _, err := b.Create(configstore.NewConfig("x", "ns", &structpb.Struct{})); err != nil {
		t.Fatal(err)
	}
	if store.Get(customKind("A"), "x", "ns") != nil || store.Get(customKind("B"), "x", "ns") == nil {
		t.Error("the object is not where its view says")
	}
}

func TestTypedHandler(t *testing.T) {
	controller := memory.NewController(newStore(t, istio.Schemas()))
	entries := configstore.Typed[*networking.ServiceEntry](controller)
	var got []string
	note := func(old, curr configstore.ConfigOf[*networking.ServiceEntry], event configstore.Event) {
		got = append(got, fmt.Sprint(event, old.Spec.GetHosts(), curr.Spec.GetHosts()))
	}
	controller.RegisterEventHandler(istio.ServiceEntry, configstore.TypedHandler(note))
	write := func(_ string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write(entries.Create(configstore.NewConfig("a", "ns", entry("a.com"))))
	write(entries.Update(configstore.NewConfig("a", "ns", entry("b.com"))))
	write("", entries.Delete("a", "ns", nil))
	controller.Drain()
	want := []string{"add [] [a.com]", "update [a.com] [b.com]", "delete [] [b.com]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
