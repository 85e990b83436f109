// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
	"github.com/pilotkit/pilotkit/internal/test/routecheck"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// directoryVariable names the environment variable of another corpus.
const directoryVariable = "PILOTKIT_CONFORMANCE_TRAFFIC"

var dump = flag.Bool("dump", false, "print what the proxies have after the last step")

// stepTimeout is far more than a step takes.
const stepTimeout = 2 * time.Minute

// TestConformanceTraffic replays every scenario.
func TestConformanceTraffic(t *testing.T) {
	t.Parallel()
	dir := directory(os.Getenv(directoryVariable))
	names, err := corpus.Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	var routed routecheck.Count
	t.Cleanup(func() { routed.Check(t) })
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, d := range replay(t, &routed, filepath.Join(dir, filepath.FromSlash(name))) {
				t.Error(d)
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
		return filepath.Join("..", "..", "..", "..", given)
	}
}

// replay runs a scenario and returns all differences. It adds the calls that a router has decided.
func replay(t *testing.T, routed *routecheck.Count, path string) []string {
	t.Helper()
	s, err := loadScenario(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := loadGolden(path + goldenSuffix)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Steps) != len(s.Steps) {
		t.Fatalf("%d steps, %d recorded", len(s.Steps), len(g.Steps))
	}
	sys, err := newSystem(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.stop()
	var out []string
	for i, st := range s.Steps {
		differences, err := sys.replayStep(t.Context(), st, g.Steps[i])
		for _, d := range differences {
			out = append(out, fmt.Sprintf("step %d: %s", i, d))
		}
		if err != nil {
			return append(out, fmt.Sprintf("step %d: %v", i, err))
		}
	}
	routed.Add(sys.routed)
	if *dump {
		sys.dump(t)
	}
	return out
}

// replayStep runs a step and compares the result.
func (sys *system) replayStep(ctx context.Context, st step, recorded recordedStep) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for _, c := range sys.clients {
		c.routes = c.routes[:0]
		for _, r := range recorded.Proxies[c.spec.Name][routes] {
			for _, config := range r {
				if n := name(routes, config); !slices.Contains(c.routes, n) {
					c.routes = append(c.routes, n)
				}
			}
		}
	}
	results, err := sys.step(ctx, st)
	out := compareResults(recorded.Results, results)
	for _, r := range recorded.Results {
		if r.Outcome != outcomeOK { // the good state before stays there, too
			maps.DeleteFunc(sys.refused, func(ref objectRef, _ any) bool { return ref.String() == r.Object })
		}
	}
	if err != nil {
		return out, err
	}
	known := newFacts(sys)
	for _, c := range sys.clients {
		got, err := c.resources()
		if err != nil {
			return out, err
		}
		got = c.t75(known, recorded.Proxies[c.spec.Name], got)
		for _, d := range append(compareProxy(known, c.spec, recorded.Proxies[c.spec.Name], got), c.repeated()...) {
			out = append(out, c.spec.Name+": "+d)
		}
		c.remember(recorded.Proxies[c.spec.Name])
		if err := c.routed(); err != nil {
			out = append(out, fmt.Sprintf("%s, router: %v", c.spec.Name, err))
		}
	}
	return out, nil
}

// dump prints the configuration of the proxies.
func (sys *system) dump(t *testing.T) {
	t.Helper()
	for _, c := range sys.clients {
		have, err := c.resources()
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.MarshalIndent(have, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s", c.spec.Name, data)
	}
}
