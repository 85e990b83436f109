// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strings"
	"testing"
)

// ExpectTeeth demands that every check finds its faults, which teeth has by the
// name of the check, and that there is one for each. setUp makes a subject with a
// fault.
func ExpectTeeth[S any](t *testing.T, checks []Check[S], teeth map[string][]string, setUp func(fault string) func(*T) S) {
	t.Helper()
	for _, c := range checks {
		if len(teeth[c.Name]) == 0 {
			t.Errorf("no broken subject proves the check %s", c.Name)
		}
		for _, fault := range teeth[c.Name] {
			t.Run(c.Name+"/"+fault, func(t *testing.T) { expectFound(t, c, setUp(fault)) })
		}
	}
}

func expectFound[S any](tb testing.TB, c Check[S], setUp func(*T) S) {
	tb.Helper()
	var failures []string
	// A race is not lost every time.
	for attempt := 0; attempt < 20 && len(failures) == 0; attempt++ {
		failures = Capture(tb, func(tb testing.TB) {
			tb.Helper()
			c.execute(tb, setUp)
		})
	}
	if len(failures) == 0 {
		tb.Fatalf("the broken subject passes")
	}
	for _, f := range failures {
		if !strings.HasPrefix(f, c.preface()) {
			tb.Errorf("the failure does not name the promise and its source:\n%s", f)
		}
	}
	tb.Logf("%s", failures[0])
}
