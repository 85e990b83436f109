// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// spoiling makes the object b bad on the way to a store.
type spoiling struct{ *memory.Store }

func (s spoiling) Apply(mutations ...configstore.Mutation) (uint64, error) {
	for i := range mutations {
		mutations[i].Config = spoil(mutations[i].Config)
	}
	return s.Store.Apply(mutations...)
}

func (s spoiling) Create(c configstore.Config) (string, error) { return s.Store.Create(spoil(c)) }

func spoil(c configstore.Config) configstore.Config {
	if c.Name == "b" {
		c.Spec = &networking.WorkloadEntry{Address: "bad"}
	}
	return c
}

// The evidence of the source's validation does not cover the changes of a wrapper: the store
// rejects the changed object, with file and document, and accepts the others.
func TestStoreValidatesWhatAWrapperChanges(t *testing.T) {
	f, _ := zoneFixture(t, file.Options{})
	f.source = file.New(f.dir, spoiling{f.store})
	f.write("a.yaml", docs(zone("a", "good"), zone("b", "good"), zone("c", "good")))
	f.reload()
	f.wantErrors("a.yaml:8:1: document 2, Zone b: spec.address: is bad")
	if got := f.store.List(f.store.Schemas().All()[0].GroupVersionKind, configstore.NamespaceAll); len(got) != 2 {
		t.Errorf("%d objects, want 2", len(got))
	}
}

// The warnings of the source's validation also reach the host of the store.
func TestStoreWarnsOfWhatTheSourceHasValidated(t *testing.T) {
	f, checked := zoneFixture(t, file.Options{})
	var warned []string
	f.store = memory.Make(f.store.Schemas(), memory.Options{
		OnWarning: func(key configstore.ConfigKey, warnings []configstore.Violation) {
			warned = append(warned, key.Name+": "+warnings[0].Message)
		},
	})
	f.source = file.New(f.dir, f.store)
	f.write("a.yaml", docs(zone("a", "good"), zone("b", "odd")))
	f.must(f.source.Reload())
	if len(warned) != 1 || warned[0] != "b: is odd" {
		t.Errorf("warned = %q, want one of b", warned)
	}
	if got := checked.Load(); got != 2 {
		t.Errorf("%d validations, want 2", got)
	}
}
