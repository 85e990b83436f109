// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// directoryVariable names the environment variable of another corpus.
const directoryVariable = "PILOTKIT_CONFORMANCE"

// TestConformance replays every scenario.
func TestConformance(t *testing.T) {
	dir := directory(os.Getenv(directoryVariable))
	names, err := corpus.Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			differences, err := replay(t, filepath.Join(dir, filepath.FromSlash(name)), nil)
			for _, d := range differences {
				t.Error(d)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// directory returns where the scenarios are: our own unless others are given. A
// relative directory is one of the module's root.
func directory(given string) string {
	switch {
	case given == "":
		return ownDirectory
	case filepath.IsAbs(given):
		return given
	default:
		return filepath.Join("..", "..", "..", given)
	}
}

// tamper changes the observation before the comparison.
type tamper func(got *observation)

// replay runs a scenario with its updaters and returns all differences.
func replay(t *testing.T, path string, tampering tamper) ([]string, error) {
	t.Helper()
	s, err := loadScenario(path)
	if err != nil {
		return nil, err
	}
	g, err := loadGolden(path + goldenSuffix)
	if err != nil {
		return nil, err
	}
	if g.unknown != nil {
		t.Logf("not compared: %v", g.unknown)
	}
	var out []string
	for _, deltas := range updaters(path) {
		differences, err := replayOnce(filepath.Base(filepath.Dir(path)), s, g, deltas, tampering)
		for _, d := range differences {
			out = append(out, updaterName(deltas)+d)
		}
		if err != nil {
			return out, err
		}
		if s.Options.StoreOnly {
			break
		}
	}
	return out, nil
}

// updaters returns the kinds of updaters for the replay of a scenario: both in the full tier, and
// by default one, chosen by the name of the scenario.
func updaters(path string) []bool {
	if tier.Full() {
		return []bool{false, true}
	}
	return []bool{len(filepath.Base(path))%2 == 0}
}

func updaterName(deltas bool) string {
	if deltas {
		return "with deltas, "
	}
	return ""
}

// replayOnce runs a scenario and returns the differences by step.
func replayOnce(topic string, s *scenario, g *golden, deltas bool, tampering tamper) ([]string, error) {
	sys, err := newSystem(s, deltas)
	if err != nil {
		return nil, err
	}
	run := &run{sys: sys, want: newExpectation(topic, s), tampering: tampering}
	recorded := g.Steps
	if s.Initial != "" {
		if len(recorded) == 0 || recorded[0].Index != -1 {
			return nil, fmt.Errorf("no recorded state after start")
		}
		if err := run.start(recorded[0]); err != nil {
			return nil, err
		}
		recorded = recorded[1:]
	} else {
		if err := sys.start(); err != nil {
			return nil, err
		}
		sys.observe(nil) // what starting alone sets off is not recorded
	}
	if len(recorded) != len(s.Steps) {
		return nil, fmt.Errorf("%d steps, %d recorded", len(s.Steps), len(recorded))
	}
	for i, st := range s.Steps {
		if err := run.step(i, st, recorded[i]); err != nil {
			return run.differences, fmt.Errorf("step %d: %w", i, err)
		}
	}
	return run.differences, nil
}

// run is one replay with its comparison.
type run struct {
	sys                 *system
	want                *expectation
	wantNames, gotNames naming
	gotIndex            indexState
	tampering           tamper
	differences         []string
}

// start fills the store, starts the system and compares its initial state.
func (r *run) start(recorded observation) error {
	results, err := r.sys.apply("", r.sys.scenario.Initial)
	if err != nil {
		return err
	}
	r.sys.at(0)
	if err := r.sys.start(); err != nil {
		return err
	}
	if len(recorded.Results) == 0 {
		results = nil
	}
	r.compare(-1, recorded.Summary, r.want.initial(recorded), r.sys.observe(results))
	return nil
}

func (r *run) step(i int, st step, recorded observation) error {
	got, err := r.sys.step(st, recorded)
	if err != nil {
		return err
	}
	r.compare(i, recorded.Summary, r.want.step(st, recorded), got)
	return nil
}

func (r *run) compare(i int, summary string, want *expected, got observation) {
	want.gotBefore = r.gotIndex
	index := stateOf(got.EndpointIndex, normaliseReplayed)
	if r.tampering != nil {
		r.tampering(&got)
	}
	for _, d := range compare(want, got, &r.wantNames, &r.gotNames) {
		r.differences = append(r.differences, fmt.Sprintf("step %d (%s): %s", i, summary, d))
	}
	r.gotIndex = index
	if r.sys.main == nil {
		return
	}
	for _, d := range explain.Verify(r.sys.main) {
		r.differences = append(r.differences, fmt.Sprintf("step %d (%s): the registry is not what its stores give: %s", i, summary, d))
	}
}
