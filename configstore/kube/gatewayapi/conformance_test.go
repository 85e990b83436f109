// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
	"github.com/pilotkit/pilotkit/internal/test/routecheck"
)

// corpusVariable is the environment variable with the folder of another corpus.
const corpusVariable = "PILOTKIT_CONFORMANCE_GATEWAYAPI"

// corpusDirectory returns the folder of the scenarios. A relative folder is below the repository's
// root.
func corpusDirectory() string {
	dir := os.Getenv(corpusVariable)
	switch {
	case dir == "":
		return filepath.Join("testdata", "conformance")
	case !filepath.IsAbs(dir):
		return filepath.Join("..", "..", "..", dir)
	}
	return dir
}

// TestConformanceGatewayAPI replays every scenario except those with Ingresses only. After the
// start and after every step the state must equal the recorded one, under the rules of
// DECISIONS.md, and the state of a fresh start.
func TestConformanceGatewayAPI(t *testing.T) {
	t.Parallel()
	dir := corpusDirectory()
	names, err := corpus.Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	var routed routecheck.Count
	t.Cleanup(func() { routed.Check(t) })
	for _, name := range names {
		if strings.HasPrefix(name, "ingress/") { // of another package
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, filepath.FromSlash(name))
			s, err := loadScenario(path)
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := loadGolden(path + goldenSuffix)
			if err != nil {
				t.Fatal(err)
			}
			differences, err := replay(t, s, recorded, &routed)
			for _, d := range differences {
				t.Error(d)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// replay runs a scenario and returns the differences. It adds the calls that a router has decided.
func replay(t *testing.T, s *scenario, recorded *golden, routed *routecheck.Count) ([]string, error) {
	t.Helper()
	if len(recorded.Steps) != len(s.Steps) {
		return nil, fmt.Errorf("%d steps, %d recorded", len(s.Steps), len(recorded.Steps))
	}
	sys := newSystem()
	if err := sys.applyAll(s.Initial); err != nil {
		return nil, err
	}
	differences, sum := sys.compare("start", &recorded.Initial), 0
	for i, st := range s.Steps {
		if err := sys.step(st); err != nil {
			return differences, fmt.Errorf("step %d: %w", i, err)
		}
		differences = append(differences, sys.compare(fmt.Sprintf("step %d", i), &recorded.Steps[i])...)
		calls, err := sys.routed(t.Context(), s.Name)
		if sum += calls; err != nil {
			differences = append(differences, fmt.Sprintf("step %d, router: %v", i, err))
		}
	}
	routed.Add(sum)
	return differences, nil
}

// compare compares the present state with a recorded one, and with the state of a fresh start.
func (s *system) compare(when string, recorded *observation) []string {
	out := s.differences(when, recorded)
	if diff := diffSnapshots(s.fresh(), s.converter.Snapshot()); diff != "" {
		out = append(out, when+" (-fresh +incremental):\n"+diff)
	}
	return append(out, s.checkUpdates(when)...)
}

// differences compares the present state with a recorded one, or, where runs differed, with its
// alternatives. Any of them is right.
func (s *system) differences(when string, recorded *observation) []string {
	out := s.differencesFrom(when, recorded)
	for name, list := range recorded.Alternatives {
		for _, alternative := range list {
			other := *recorded
			switch name {
			case "gateways":
				other.Gateways.list = alternative
			case "virtualServices":
				other.VirtualServices.list = alternative
			case "destinationRules":
				other.DestRules.list = alternative
			case "status":
				other.Status.list = alternative
			}
			if len(out) > 0 && len(s.differencesFrom(when, &other)) == 0 {
				return nil
			}
		}
	}
	return out
}

func (s *system) differencesFrom(when string, recorded *observation) []string {
	var out []string
	want, got := recorded.state(), s.state()
	for _, wrong := range decide(s, &want, &got) {
		out = append(out, when+", "+wrong)
	}
	for _, section := range []struct {
		name      string
		want, got map[string]map[string]any
	}{
		{"gateways", want.gateways, got.gateways},
		{"virtualServices", want.virtualServices, got.virtualServices},
		{"destinationRules", want.destinationRules, got.destinationRules},
		{"status", want.statuses, got.statuses},
	} {
		if diff := cmp.Diff(section.want, section.got); diff != "" {
			out = append(out, when+", "+section.name+" (-recorded +ours):\n"+diff)
		}
	}
	return out
}
