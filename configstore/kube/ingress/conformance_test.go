// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/kube/ingress"
	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

// corpusVariable is the environment variable with the folder of another corpus of the same format.
const corpusVariable = "PILOTKIT_CONFORMANCE_GATEWAYAPI"

// TestConformanceIngress replays every scenario with Ingresses. At first and after each step, the
// recording must equal the model of the recorded rules, and the Converter's state the model of the
// right rules. The rows of DECISIONS.md are therefore in the model, and no file is exempt. A
// relative folder is below the repository's root.
func TestConformanceIngress(t *testing.T) {
	dir := os.Getenv(corpusVariable)
	switch {
	case dir == "":
		dir = filepath.Join("testdata", "conformance")
	case !filepath.IsAbs(dir):
		dir = filepath.Join("..", "..", "..", dir)
	}
	names, err := corpus.Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	replayed := 0
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		data, err := os.ReadFile(path + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "kind: Ingress\n") {
			continue
		}
		replayed++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := loadScenario(path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := loadRecording(path)
			if err != nil {
				t.Fatal(err)
			}
			wrong, err := replay(t, s, r, map[string]bool{})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range wrong {
				t.Error(w)
			}
		})
	}
	if replayed == 0 {
		t.Fatalf("no scenario in %s has an Ingress", dir)
	}
}

// replay returns the differences in a scenario. Inconsistencies of updates are errors of the test.
// It adds the names that two hosts had to clashed.
func replay(t *testing.T, s *scenario, r *recording, clashed map[string]bool) (wrong []string, err error) {
	t.Helper()
	if len(r.observations) != len(s.Steps)+1 {
		return nil, fmt.Errorf("%d steps, %d recorded", len(s.Steps), len(r.observations)-1)
	}
	c, converter := newCluster(), ingress.NewConverter()
	mesh, err := c.configure(s.Options.MeshConfig)
	if err != nil {
		return nil, err
	}
	initial, err := c.apply(s.Initial)
	if err != nil {
		return nil, err
	}
	batches := [][]ingress.Change{append(initial, mesh)}
	for i := range r.observations {
		if i > 0 {
			if batches, err = c.batches(s.Steps[i-1]); err != nil {
				return nil, fmt.Errorf("step %d: %w", i-1, err)
			}
		}
		for _, batch := range batches {
			checkUpdate(t, converter.Apply(batch...))
		}
		found, err := compareAll(c.world, converter.Snapshot(), r.observations[i], clashed)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			wrong = append(wrong, fmt.Sprintf("step %d, %s", i-1, f))
		}
	}
	return wrong, nil
}

// compareAll compares both models and a new conversion.
func compareAll(w *world, s *ingress.Snapshot, o observation, clashed map[string]bool) (wrong []string, err error) {
	variants, err := o.variants()
	if err != nil {
		return nil, err
	}
	var first []string
	right := false
	for _, v := range variants {
		found := model{w, true}.compare(v, clashed)
		if right = right || len(found) == 0; first == nil {
			first = found
		}
	}
	if !right {
		for _, f := range first {
			wrong = append(wrong, "recorded: "+f)
		}
	}
	now, found := observe(s)
	for _, f := range slices.Concat(found, model{w, false}.compare(now, map[string]bool{})) {
		wrong = append(wrong, "converted: "+f)
	}
	if d := diff(w.fresh(), s); d != "" {
		wrong = append(wrong, "a new conversion (-new +now):\n"+d)
	}
	return wrong, nil
}
