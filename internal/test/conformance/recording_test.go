// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"path/filepath"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

// TestRecordings checks the expectations without a replay: every file is readable and fully
// understood, the recorded rules of the store model reproduce the recording, and the rules for
// comparing calls hold for the recorded calls.
func TestRecordings(t *testing.T) {
	names, err := corpus.Names(ownDirectory)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(ownDirectory, filepath.FromSlash(name))
			s, err := loadScenario(path)
			if err != nil {
				t.Fatal(err)
			}
			g, err := loadGolden(path + goldenSuffix)
			if err != nil {
				t.Fatal(err)
			}
			if g.unknown != nil {
				t.Error(g.unknown)
			}
			if g.Name != s.Name {
				t.Errorf("golden file of %q beside scenario %q", g.Name, s.Name)
			}
			checkRecording(t, s, g)
		})
	}
}

func checkRecording(t *testing.T, s *scenario, g *golden) {
	t.Helper()
	x := newExpectation("", s)
	for i, rec := range g.Steps {
		st := step{Apply: &s.Initial}
		if rec.Index >= 0 {
			st = s.Steps[rec.Index]
		}
		e := x.step(st, rec)
		for _, p := range e.problems {
			t.Errorf("entry %d: %s", i, p)
		}
		if !e.storeOnly {
			checkRecordedCalls(t, rec, e)
		}
	}
}

// checkRecordedCalls checks that playing the recorded calls leads to the recorded
// index, and that DNS services were pushed for their endpoints only if these
// changed.
func checkRecordedCalls(t *testing.T, rec observation, e *expected) {
	t.Helper()
	after := pushesOf(e.before, rec.Calls, e.normalise, true).after
	for _, k := range keysOf(after, e.all.after) {
		for shard := range after[k] {
			if !sameEndpoints(after[k][shard], e.all.after[k][shard]) {
				t.Errorf("entry %d: the calls do not lead to the recorded endpoints of %s", rec.Index, k)
			}
		}
	}
	for config := range configs(withoutNoPush(rec.Calls), reasonEndpoint, true) {
		changed := false
		for k := range e.all.strongest {
			_, dns := e.dns[k]
			changed = changed || serviceConfig(k) == config && dns
		}
		if !changed {
			t.Errorf("entry %d: %s was pushed for its endpoints, which did not change", rec.Index, config)
		}
	}
}

// withoutNoPush drops EDSUpdates that repeat the content of the index, with the ConfigUpdate that
// directly follows.
func withoutNoPush(calls []call) []call {
	var out []call
	for i, c := range calls {
		follows := i > 0 && calls[i-1].Call == callEDSUpdate && calls[i-1].PushType == noPush
		if !follows || c.Call != callConfigUpdate {
			out = append(out, c)
		}
	}
	return out
}
