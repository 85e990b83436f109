// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

var historySteps = flag.Int("history-steps", 120, "steps of each random history")

// TestHistories: after every step of random histories of the objects of all scenarios the state,
// with its statuses, equals that of a fresh start, and the reported changes lead to it.
func TestHistories(t *testing.T) {
	t.Parallel()
	pool := documentsOfCorpus(t)
	steps, seeds := *historySteps, uint64(2)
	if !tier.Full() {
		steps, seeds = 60, 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 25))
			sys, converted := newSystem(), map[string]bool{}
			for i := range steps {
				did, err := sys.randomStep(random, pool)
				if err != nil {
					t.Fatalf("step %d, %s: %v", i, did, err)
				}
				if diff := diffSnapshots(sys.fresh(), sys.converter.Snapshot()); diff != "" {
					t.Fatalf("step %d, %s (-fresh +incremental):\n%s", i, did, diff)
				}
				for _, wrong := range sys.checkUpdates(fmt.Sprintf("step %d, %s", i, did)) {
					t.Fatal(wrong)
				}
				for _, kind := range configKinds {
					for _, c := range sys.converter.Snapshot().Configs(kind) {
						converted[c.Key().String()] = true
					}
				}
			}
			if len(converted) < min(steps/2, 100) {
				t.Errorf("the history has led to %d configs only", len(converted))
			}
			sys.removeAll(t)
		})
	}
}

// TestLoweredSizes runs histories without maps that are used again.
func TestLoweredSizes(t *testing.T) { testmain.Lowered(t, "^TestHistories$") }

// TestLongHistory: after two histories of 5,000 steps, which accumulate more remains, the state
// also equals that of a fresh start.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	pool := documentsOfCorpus(t)
	steps := tier.Share(5000)
	for _, seed := range histories.Seeds(t, 2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			longHistory(t, rand.New(rand.NewPCG(seed, 10_000)), pool, steps)
		})
	}
}

func longHistory(t *testing.T, random *rand.Rand, pool []map[string]any, steps int) {
	t.Helper()
	const interval = 500
	sys := newSystem()
	for i := range steps {
		did, err := sys.randomStep(random, pool)
		if err != nil {
			t.Fatalf("step %d, %s: %v", i, did, err)
		}
		for _, wrong := range sys.checkUpdates(fmt.Sprintf("step %d, %s", i, did)) {
			t.Fatal(wrong)
		}
		if i%interval != interval-1 {
			continue
		}
		if diff := diffSnapshots(sys.fresh(), sys.converter.Snapshot()); diff != "" {
			t.Fatalf("step %d, %s (-fresh +incremental):\n%s", i, did, diff)
		}
	}
	sys.removeAll(t)
}

// randomStep sets or deletes some objects at once.
func (s *system) randomStep(random *rand.Rand, pool []map[string]any) (did string, err error) {
	for range 1 + random.IntN(4) {
		if present := slices.SortedFunc(maps.Keys(s.objects), compareRefs); len(present) > 0 && random.IntN(5) == 0 {
			ref := present[random.IntN(len(present))]
			did += fmt.Sprint("delete ", ref, "; ")
			if err := s.remove(ref); err != nil {
				return did, err
			}
			continue
		}
		doc := pool[random.IntN(len(pool))]
		if random.IntN(6) == 0 && doc["kind"] != "ServiceEntry" { // as one that no API server has completed
			doc = asMap(doc)
			spec, _ := doc["spec"].(map[string]any)
			removeField(random, spec)
		}
		did += fmt.Sprint("set ", doc["kind"], "/", text(doc, "metadata", "namespace"), "/", text(doc, "metadata", "name"), "; ")
		if err := s.apply(doc); err != nil {
			return did, err
		}
	}
	return did, s.settle()
}

// removeField removes a random field of a document, at any depth.
func removeField(random *rand.Rand, of map[string]any) {
	keys := slices.Sorted(maps.Keys(of))
	if len(keys) == 0 {
		return
	}
	key := keys[random.IntN(len(keys))]
	switch v := of[key].(type) {
	case map[string]any:
		if random.IntN(4) > 0 {
			removeField(random, v)
			return
		}
	case []any:
		if len(v) > 0 && random.IntN(6) > 0 {
			if m, ok := v[random.IntN(len(v))].(map[string]any); ok {
				removeField(random, m)
				return
			}
		}
	}
	delete(of, key)
}

// removeAll deletes all objects: the Converter must be empty, including its internal state.
func (s *system) removeAll(t *testing.T) {
	t.Helper()
	for _, ref := range slices.SortedFunc(maps.Keys(s.objects), compareRefs) {
		if err := s.remove(ref); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	if diff := diffSnapshots(&Snapshot{}, s.converter.Snapshot()); diff != "" {
		t.Errorf("without objects there is (-want +got):\n%s", diff)
	}
	c := s.converter
	for name, n := range map[string]int{
		"servers": len(c.serverOf), "hosts": len(c.hosts), "attached": len(c.attached), "users": len(c.users), "gateways": len(c.gatewayStates),
		"sets": len(c.setStates), "routes": len(c.routeStates), "policies": len(c.policyStates), "names": len(c.hostConfigs),
		"reads": len(c.reads), "readers": len(c.readers),
	} {
		if n != 0 {
			t.Errorf("without objects %d %s are left", n, name)
		}
	}
}

func compareRefs(a, b objectRef) int {
	return ObjectKey{Kind(a.Kind), Key{a.Namespace, a.Name}}.Compare(ObjectKey{Kind(b.Kind), Key{b.Namespace, b.Name}})
}

// variants returns the ListenerSets of the scenarios under other names and for other Gateways,
// because the scenarios have too few combinations.
func variants(doc map[string]any) []map[string]any {
	var out []map[string]any
	switch doc["kind"] {
	case "Gateway":
		other := asMap(doc)
		other["metadata"].(map[string]any)["name"] = "two"
		out = append(out, other)
	case "ListenerSet":
		for _, gateway := range []string{"edge", "two"} {
			for _, name := range []string{"edge", "two", "extra"} {
				other := asMap(doc)
				other["metadata"].(map[string]any)["name"] = name
				other["metadata"].(map[string]any)["namespace"] = "infra"
				other["spec"].(map[string]any)["parentRef"].(map[string]any)["name"] = gateway
				out = append(out, other)
			}
		}
	}
	return out
}

// documentsOfCorpus returns the distinct objects of all scenarios.
func documentsOfCorpus(t *testing.T) []map[string]any {
	t.Helper()
	dir := corpusDirectory()
	names, err := corpus.Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for _, name := range names {
		if strings.HasPrefix(name, "ingress/") {
			continue
		}
		s, err := loadScenario(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{s.Initial}
		for _, st := range s.Steps {
			texts = append(texts, deref(st.Apply, ""))
		}
		for _, text := range texts {
			docs, err := documents(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range docs {
				found[fmt.Sprint(doc)] = doc
				if strings.HasPrefix(name, "listenerset/") {
					for _, variant := range variants(doc) {
						found[fmt.Sprint(variant)] = variant
					}
				}
			}
		}
	}
	var out []map[string]any
	for _, text := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[text])
	}
	return out
}
