// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// corpusVariable names the environment variable of another corpus.
const corpusVariable = "PILOTKIT_CONFORMANCE_KUBE"

// TestConformanceKube replays every scenario, with complete lists of endpoints and
// with deltas. A relative directory is one of the repository's root.
func TestConformanceKube(t *testing.T) {
	dir := os.Getenv(corpusVariable)
	switch {
	case dir == "":
		dir = "../../testdata/conformance/kube"
	case !filepath.IsAbs(dir):
		dir = filepath.Join("..", "..", dir)
	}
	names, err := corpus.Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, filepath.FromSlash(name))
			s, err := loadScenario(path)
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := loadGolden(path + ".golden.json")
			if err != nil {
				t.Fatal(err)
			}
			for _, deltas := range []bool{false, true} {
				if !tier.Full() && deltas != (i%2 == 0) {
					continue
				}
				differences, err := replay(s, recorded, deltas)
				for _, d := range differences {
					t.Errorf("deltas %t, %s", deltas, d)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// replay runs a scenario and returns the differences.
func replay(s *scenario, recorded []record, deltas bool) ([]string, error) {
	sys, err := newSystem(s, deltas)
	if err != nil {
		return nil, err
	}
	r := newComparison(sys)
	sys.start()
	if len(recorded) > 0 && fmt.Sprint(recorded[0]["index"]) == "-1" {
		r.moment(nil)
		r.compare("start", recorded[0])
		recorded = recorded[1:]
	} else {
		r.moment(nil)
		r.forget()
	}
	if len(recorded) != len(s.Steps) {
		return nil, fmt.Errorf("%d steps, %d recorded", len(s.Steps), len(recorded))
	}
	for i, st := range s.Steps {
		if err := sys.step(st, func() { r.moment(&st) }); err != nil {
			return r.differences, fmt.Errorf("step %d: %w", i, err)
		}
		r.compare(fmt.Sprintf("step %d (%s)", i, recorded[i].str("summary")), recorded[i])
	}
	return r.differences, nil
}
