// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
	"github.com/pilotkit/pilotkit/internal/test/routecheck"
)

// securityVariable names the environment variable of another corpus of the security kinds.
const securityVariable = "PILOTKIT_CONFORMANCE_SECURITY"

// ownSecurity holds the corpus of this module.
const ownSecurity = "../../../../testdata/conformance/security"

// securityTopics are the prefixes of the replayed scenarios: those of kinds with an effect.
var securityTopics = []string{
	"authorization/",
	"istio-authz/",
	"changes/dry-run-toggles", "changes/jwt-life", "changes/policy-", "changes/refused-update",
	"request-authentication/",
	"random/a",
	"grpc-server/",
	"clients/",
	"changes/",
	"random/g",
	"random/c",
}

// securityScenario reports whether a scenario is about kinds with an effect. Other content of it is
// left out of the comparison.
func securityScenario(name string) bool {
	return slices.ContainsFunc(securityTopics, func(topic string) bool { return strings.HasPrefix(name, topic) })
}

// TestConformanceSecurity replays every scenario about kinds with an effect.
func TestConformanceSecurity(t *testing.T) {
	t.Parallel()
	dir, names := securityScenarios(t)
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

// securityScenarios returns the directory of the scenarios, and the names of the replayed ones.
func securityScenarios(t *testing.T) (dir string, names []string) {
	t.Helper()
	dir = ownSecurity
	if given := os.Getenv(securityVariable); given != "" {
		dir = directory(given)
	}
	all, err := corpus.Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if securityScenario(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("no scenario in %s", dir)
	}
	return dir, names
}
