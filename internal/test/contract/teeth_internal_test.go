// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// itself makes the T the suite.
func itself(t *T) *T { return t }

func TestExpectTeeth(t *testing.T) {
	type suite struct {
		*T
		fault string
	}
	var executed []string
	checks := []Check[suite]{{Name: "Check", Run: func(s suite) {
		executed = append(executed, s.fault)
		s.Broken("%s", s.fault)
	}}}
	ExpectTeeth(t, checks, map[string][]string{"Check": {"one fault", "another"}}, func(fault string) func(*T) suite {
		return func(t *T) suite { return suite{t, fault} }
	})
	if diff := cmp.Diff([]string{"one fault", "another"}, executed); diff != "" {
		t.Errorf("the check was run with (-want +got):\n%s", diff)
	}
}

func TestExpectFound(t *testing.T) {
	races := 0
	for _, test := range []struct {
		name  string
		check Check[*T]
		want  []string
	}{
		{"found", Check[*T]{Run: func(t *T) { t.Broken("not so") }}, nil},
		{"found at last", Check[*T]{Run: func(t *T) {
			if races++; races == 20 {
				t.Stop("not so")
			}
		}}, nil},
		{"not found", Check[*T]{Run: func(*T) {}}, []string{"the broken subject passes"}},
		{
			"skipped",
			Check[*T]{Skip: func(*T) string { return "why not" }, Run: func(t *T) { t.Broken("not so") }},
			[]string{"the broken subject passes"},
		},
		{
			"another failure",
			Check[*T]{Run: func(t *T) {
				t.Broken("not so")
				t.Errorf("lost")
			}},
			[]string{"the failure does not name the promise and its source:\nlost"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Capture(t, func(tb testing.TB) {
				tb.Helper()
				expectFound(tb, test.check, itself)
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// What users see.
func TestReport(t *testing.T) {
	check := Check[*T]{Promise: "water is wet", Source: "package water, Wetness", Run: func(t *T) {
		t.Broken("%d dry drops", 2)
		t.Stop("100%% dust")
		t.Broken("went on")
	}}
	got := Capture(t, func(tb testing.TB) {
		tb.Helper()
		check.execute(tb, itself)
	})
	want := []string{
		"broken promise: water is wet\n\tmade in: package water, Wetness\n\tseen: 2 dry drops",
		"broken promise: water is wet\n\tmade in: package water, Wetness\n\tseen: 100% dust",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}
