// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

func workload(name, address string) string {
	return "apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: " + name +
		", namespace: ns, resourceVersion: \"77\"}\nspec:\n  address: " + address + "\n---\n"
}

func addresses(store configstore.ConfigStore) map[string]string {
	got := make(map[string]string)
	for _, w := range configstore.Typed[*networking.WorkloadEntry](store).List("") {
		got[w.Name] = w.Spec.Address
	}
	return got
}

// single hides that a store takes batches.
type single struct{ configstore.ConfigStore }

func TestApply(t *testing.T) {
	for name, wrap := range map[string]func(*memory.Store) configstore.ConfigStore{
		"batch":       func(s *memory.Store) configstore.ConfigStore { return s },
		"one by one":  func(s *memory.Store) configstore.ConfigStore { return single{s} },
		"with a view": func(s *memory.Store) configstore.ConfigStore { return memory.NewController(s) },
	} {
		t.Run(name, func(t *testing.T) {
			memoryStore := memory.Make(istio.Schemas())
			store := wrap(memoryStore)
			apply := func(text string) error { return manifest.Apply(store, []byte(text), manifest.Options{}) }
			if err := apply(workload("a", "10.0.0.1") + workload("b", "10.0.0.2")); err != nil {
				t.Fatal(err)
			}
			before := memoryStore.Revision()
			if err := apply(workload("a", "10.0.0.1") + workload("b", "10.0.0.2")); err != nil || memoryStore.Revision() != before {
				t.Errorf("applying what is stored: %v, revision %d after %d", err, memoryStore.Revision(), before)
			}
			if err := apply(workload("b", "10.0.0.3") + workload("c", "10.0.0.4")); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"a": "10.0.0.1", "b": "10.0.0.3", "c": "10.0.0.4"}
			if diff := cmp.Diff(want, addresses(memoryStore)); diff != "" {
				t.Errorf("stored, (-want +got):\n%s", diff)
			}
		})
	}
}

// batches counts the batches that a store is given.
type batches struct {
	*memory.Store
	sizes []int
}

func (b *batches) Apply(changes ...configstore.Mutation) (uint64, error) {
	b.sizes = append(b.sizes, len(changes))
	return b.Store.Apply(changes...)
}

// wrapped hides a store, and declares the wrapped one.
type wrapped struct{ configstore.ConfigStore }

func (w wrapped) Unwrap() configstore.ConfigStore { return w.ConfigStore }

// TestApplyIsOneBatch: a store that takes batches is given one, also behind a wrapper.
func TestApplyIsOneBatch(t *testing.T) {
	store := &batches{Store: memory.Make(istio.Schemas())}
	text := workload("a", "10.0.0.1") + workload("b", "10.0.0.2")
	if err := manifest.Apply(wrapped{store}, []byte(text), manifest.Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{2}, store.sizes); diff != "" {
		t.Errorf("sizes of the batches (-want +got):\n%s", diff)
	}
}

func TestApplyStoresNothingOfABadInput(t *testing.T) {
	store := memory.Make(istio.Schemas())
	err := manifest.Apply(store, []byte(workload("a", "10.0.0.1")+workload("b", "''")+
		"apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: c}\nspec: {addrezz: x}\n"), manifest.Options{})
	if !errors.Is(err, configstore.ErrInvalid) || !errors.Is(err, manifest.ErrMalformed) {
		t.Errorf("error = %v, want one of each kind", err)
	}
	for _, want := range []string{"document 2, line 11: WorkloadEntry ns/b is invalid: spec.address: ", "document 3, WorkloadEntry c: line 16, "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, without %q", err, want)
		}
	}
	if got := addresses(store); len(got) > 0 {
		t.Errorf("stored: %v", got)
	}
}

func TestApplyReportsWhatTheStoreRefuses(t *testing.T) {
	refuse := errors.New("refused")
	store := memory.Make(istio.Schemas())
	err := manifest.Apply(refusing{store, refuse}, []byte(workload("a", "10.0.0.1")), manifest.Options{})
	if !errors.Is(err, refuse) {
		t.Errorf("error = %v", err)
	}
}

// refusing refuses every new object.
type refusing struct {
	configstore.ConfigStore
	err error
}

func (r refusing) Create(configstore.Config) (string, error) { return "", r.err }
