// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
)

func TestConfigKeyStrings(t *testing.T) {
	kind := version("v1", "A")
	tests := []struct {
		name           string
		key            configstore.ConfigKey
		string, object string
	}{
		{name: "namespaced", key: configstore.ConfigKey{Kind: kind, Name: "a", Namespace: "ns"}, string: "A/ns/a", object: "A ns/a"},
		{name: "cluster-scoped", key: configstore.ConfigKey{Kind: kind, Name: "a"}, string: "A//a", object: "A a"},
		{name: "without a kind", key: configstore.ConfigKey{Name: "a", Namespace: "ns"}, string: "/ns/a", object: "ns/a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.key.String(); got != tt.string {
				t.Errorf("String() = %q, want %q", got, tt.string)
			}
			if got := tt.key.Object(); got != tt.object {
				t.Errorf("Object() = %q, want %q", got, tt.object)
			}
		})
	}
}

func TestConfigKeyCompare(t *testing.T) {
	key := func(group, v, kind, namespace, name string) configstore.ConfigKey {
		return configstore.ConfigKey{
			Kind: configstore.GroupVersionKind{Group: group, Version: v, Kind: kind}, Namespace: namespace, Name: name,
		}
	}
	sorted := []configstore.ConfigKey{
		key("a", "v2", "K", "ns", "n"),
		key("b", "v2", "J", "ns", "n"),
		key("b", "v2", "K", "ms", "o"),
		key("b", "v2", "K", "ns", "m"),
		key("b", "v1", "K", "ns", "n"),
		key("b", "v2", "K", "ns", "n"),
	}
	shuffled := slices.Clone(sorted)
	slices.Reverse(shuffled)
	slices.SortFunc(shuffled, configstore.ConfigKey.Compare)
	if diff := cmp.Diff(sorted, shuffled); diff != "" {
		t.Errorf("sorted (-want +got):\n%s", diff)
	}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := a.Compare(b); (got == 0) != (i == j) || (got < 0) != (i < j) {
				t.Errorf("%v.Compare(%v) = %d", a, b, got)
			}
		}
	}
}

func TestGroupVersionKindStrings(t *testing.T) {
	tests := []struct {
		name               string
		kind               configstore.GroupVersionKind
		string, apiVersion string
	}{
		{name: "group", kind: version("v1", "A"), string: "example.com/v1/A", apiVersion: "example.com/v1"},
		{name: "core", kind: configstore.GroupVersionKind{Version: "v1", Kind: "Pod"}, string: "core/v1/Pod", apiVersion: "v1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.kind.String(); got != tt.string {
				t.Errorf("String() = %q, want %q", got, tt.string)
			}
			if got := tt.kind.APIVersion(); got != tt.apiVersion {
				t.Errorf("APIVersion() = %q, want %q", got, tt.apiVersion)
			}
		})
	}
}

func TestEventString(t *testing.T) {
	for event, want := range map[configstore.Event]string{
		configstore.EventAdd: "add", configstore.EventUpdate: "update", configstore.EventDelete: "delete", 0: "Event(0)",
	} {
		if got := event.String(); got != want {
			t.Errorf("Event(%d).String() = %q, want %q", int(event), got, want)
		}
	}
}
