// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"flag"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// switches says how often traffic moves in each scenario.
var switches = flag.Int("switches", 0, "how often traffic moves in each scenario, in all variants; 0: a short round of some variants")

// shortRound is how often it does by default.
const shortRound = 10

// variants are the variants of a scenario. Outside the full tier there is one, by delta. A short
// round has both protocols, one of them with churn, of the newest Envoy, and with the oldest one
// only the first scenario.
func variants(t *testing.T, first bool) (n int, out []variant) {
	t.Helper()
	newest, oldest := envoyproxy.Newest(t), envoyproxy.Oldest(t)
	if !tier.Full() && *switches == 0 {
		return shortRound / 2, []variant{{program: newest, delta: true, churn: true}}
	}
	if *switches == 0 {
		out = []variant{{program: newest}, {program: newest, delta: true, churn: true}}
		if first && oldest != newest {
			out = append(out, variant{program: oldest, churn: true}, variant{program: oldest, delta: true})
		}
		return shortRound, out
	}
	for _, program := range envoyproxy.Programs(t) {
		for _, churn := range []bool{false, true} {
			out = append(out, variant{program: program, churn: churn}, variant{program: program, delta: true, churn: churn})
		}
	}
	return *switches, out
}

// playAll plays scenarios in their variants.
func playAll(t *testing.T, all []scenario) {
	t.Helper()
	for i, s := range all {
		if !tier.Sampled(t, s.name, 8) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			n, vs := variants(t, i == 0)
			for _, v := range vs {
				t.Run(v.String(), func(t *testing.T) { newStage(t, s.withDefaults(), v).play(n) })
			}
		})
	}
}

// TestSwitches: traffic moves, by any change of a user, and no call is lost.
func TestSwitches(t *testing.T) { playAll(t, scenarios) }
