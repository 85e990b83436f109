// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

func fullConfig() configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind:  istio.ServiceEntry,
			UID:               "u",
			Name:              "a",
			Namespace:         "ns",
			Domain:            "cluster.local",
			Labels:            map[string]string{"l": "1"},
			Annotations:       map[string]string{"a": "1"},
			ResourceVersion:   "7",
			CreationTimestamp: time.Unix(1700000000, 0),
			OwnerReferences:   []configstore.OwnerReference{{Kind: "Owner", Name: "o"}},
			Generation:        3,
		},
		Spec:   &networking.ServiceEntry{Hosts: []string{"a.com"}},
		Status: &networking.ServiceEntryStatus{ObservedGeneration: 3},
	}
}

func TestConfigKey(t *testing.T) {
	want := configstore.ConfigKey{Kind: istio.ServiceEntry, Name: "a", Namespace: "ns"}
	if got := fullConfig().Key(); got != want {
		t.Errorf("Key() = %v, want %v", got, want)
	}
}

// TestConfigCloneSharesNothing changes everything that a clone points to.
func TestConfigCloneSharesNothing(t *testing.T) {
	original := fullConfig()
	clone := original.Clone()
	if !clone.Equal(original) {
		t.Fatalf("Clone() = %v, want %v", clone, original)
	}
	clone.Labels["l"] = "2"
	clone.Annotations["a"] = "2"
	clone.OwnerReferences[0].Name = "p"
	clone.Spec.(*networking.ServiceEntry).Hosts[0] = "b.com"
	clone.Status.(*networking.ServiceEntryStatus).ObservedGeneration = 4
	if !original.Equal(fullConfig()) {
		t.Errorf("changing the clone changed the original: %v", original)
	}
	if got := (configstore.Config{}).Clone(); !got.Equal(configstore.Config{}) || got.Spec != nil || got.Status != nil {
		t.Errorf("the clone of nothing is %v", got)
	}
}

func TestConfigEqual(t *testing.T) {
	tests := []struct {
		name   string
		change func(*configstore.Config)
		equal  bool
	}{
		{name: "same", change: func(*configstore.Config) {}, equal: true},
		{name: "kind", change: func(c *configstore.Config) { c.GroupVersionKind = istio.Gateway }},
		{name: "uid", change: func(c *configstore.Config) { c.UID = "v" }},
		{name: "name", change: func(c *configstore.Config) { c.Name = "b" }},
		{name: "namespace", change: func(c *configstore.Config) { c.Namespace = "b" }},
		{name: "domain", change: func(c *configstore.Config) { c.Domain = "b" }},
		{name: "labels", change: func(c *configstore.Config) { c.Labels = nil }},
		{name: "label", change: func(c *configstore.Config) { c.Labels["l"] = "2" }},
		{name: "annotations", change: func(c *configstore.Config) { c.Annotations = nil }},
		{name: "resource version", change: func(c *configstore.Config) { c.ResourceVersion = "8" }},
		{name: "creation", change: func(c *configstore.Config) { c.CreationTimestamp = c.CreationTimestamp.Add(1) }},
		{name: "creation in UTC", change: func(c *configstore.Config) { c.CreationTimestamp = c.CreationTimestamp.UTC() }, equal: true},
		{name: "owners", change: func(c *configstore.Config) { c.OwnerReferences[0].Controller = true }},
		{name: "generation", change: func(c *configstore.Config) { c.Generation = 4 }},
		{name: "spec", change: func(c *configstore.Config) { c.Spec = &networking.ServiceEntry{} }},
		{name: "spec of another type", change: func(c *configstore.Config) { c.Spec = &networking.Gateway{} }},
		{name: "no spec", change: func(c *configstore.Config) { c.Spec = nil }},
		{name: "no status", change: func(c *configstore.Config) { c.Status = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := fullConfig(), fullConfig()
			tt.change(&b)
			if got := a.Equal(b); got != tt.equal {
				t.Errorf("a.Equal(b) = %v, want %v", got, tt.equal)
			}
			if got := b.Equal(a); got != tt.equal {
				t.Errorf("b.Equal(a) = %v, want %v", got, tt.equal)
			}
		})
	}
	empty, null := fullConfig(), fullConfig()
	empty.Labels, null.Labels = map[string]string{}, nil
	if !empty.Equal(null) {
		t.Error("empty and nil labels differ")
	}
}

// TestEqualMessagePanicsOnNil is named after a defect of Istio 1.30, whose
// comparison panics when one of the messages is missing.
func TestEqualMessagePanicsOnNil(t *testing.T) {
	entry := &networking.ServiceEntry{}
	same := &networking.ServiceEntry{}
	tests := []struct {
		name string
		a, b proto.Message
		want bool
	}{
		{name: "both nil", want: true},
		{name: "one nil", a: entry},
		{name: "identical", a: entry, b: entry, want: true},
		{name: "equal", a: entry, b: same, want: true},
		{name: "different types", a: entry, b: &networking.Gateway{}},
		{name: "different content", a: entry, b: &networking.ServiceEntry{Hosts: []string{"a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := configstore.EqualMessage(tt.a, tt.b); got != tt.want {
				t.Errorf("EqualMessage(a, b) = %v, want %v", got, tt.want)
			}
			if got := configstore.EqualMessage(tt.b, tt.a); got != tt.want {
				t.Errorf("EqualMessage(b, a) = %v, want %v", got, tt.want)
			}
		})
	}
}
