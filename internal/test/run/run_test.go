// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]options{
		"":                               {tier: byDefault, patterns: []string{"./..."}},
		"-short ./aggregate":             {tier: short, patterns: []string{"./aggregate"}, flags: []string{"-short"}},
		"-run TestMove -count=1 ./a/...": {tier: byDefault, patterns: []string{"./a/..."}, flags: []string{"-run", "TestMove", "-count=1"}},
		"-full -budget=20m":              {tier: full, patterns: []string{"./..."}, env: []string{"PILOTKIT_TESTS=full"}, budget: 20 * time.Minute},
		"-v -histories=7 .":              {tier: byDefault, patterns: []string{"."}, flags: []string{"-v"}, env: []string{"PILOTKIT_HISTORIES=7"}, verbose: true},
	} {
		got, err := parse(strings.Fields(line))
		if err != nil || got.tier != want.tier || !slices.Equal(got.patterns, want.patterns) || !slices.Equal(got.flags, want.flags) ||
			!slices.Equal(got.env, want.env) || got.verbose != want.verbose || got.budget != want.budget {
			t.Errorf("%s: %+v, %v; want %+v", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"-short -full":    "exclude each other",
		"-v aggregate":    `"aggregate" is neither`,
		"-budget=20m":     "-budget is for -full",
		"-full -budget=x": "-budget=x",
		"-histories=lots": "-histories=lots",
	} {
		if _, err := parse(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	for pattern, want := range map[string][]string{
		"./...":         {"", "a", "a/b", "ab"},
		".":             {""},
		"./a":           {"a"},
		"./a/...":       {"a", "a/b"},
		"./a/b/../b":    {"a/b"},
		"./nothing/...": nil,
	} {
		var got []string
		for _, dir := range []string{"", "a", "a/b", "ab"} {
			folder := dir
			if folder == "" {
				folder = "."
			}
			if covers(pattern, folder) {
				got = append(got, dir)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s covers %q, want %q", pattern, got, want)
		}
	}
	if _, err := list(t.Context(), []string{"."}, []string{"./nosuch"}); err == nil || err.Error() != "no package matches ./nosuch" {
		t.Errorf("a pattern of nothing: %v", err)
	}
}

// TestTiers checks which packages a tier tests, and which of them the race detector sees.
func TestTiers(t *testing.T) {
	packages := []pkg{
		{".", "internal/pmap"},
		{".", "aggregate"},
		{".", "xdsupdate/traffic"},
		{"registry/kube", "registry/kube"},
		{"internal/test/gatewayconformance", "internal/test/gatewayconformance"},
		{".", "internal/test/realenvoy"},
	}
	plan := func(flags ...string) (out []string) {
		o, err := parse(flags)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range o.calls(o.tested(slices.Clone(packages), newReport(io.Discard, false))) {
			line := c.module
			if c.race {
				line += " race"
			}
			for _, p := range c.packages {
				line += " " + p.argument()
			}
			out = append(out, line)
		}
		return out
	}
	for _, tt := range []struct{ flags, want []string }{
		{[]string{"-short"}, []string{". ./internal/pmap ./aggregate ./xdsupdate/traffic", "registry/kube ./."}},
		{nil, []string{". ./internal/pmap ./internal/test/realenvoy", ". ./xdsupdate/traffic", ". race ./aggregate", ". race ./xdsupdate/traffic", "registry/kube race ./."}},
		{[]string{"-run", "X"}, []string{". ./internal/pmap ./xdsupdate/traffic ./internal/test/realenvoy", ". race ./aggregate", "registry/kube race ./."}},
		{[]string{"-full"}, []string{
			". race ./internal/pmap ./aggregate ./xdsupdate/traffic ./internal/test/realenvoy", "registry/kube race ./.", "internal/test/gatewayconformance race ./.",
		}},
	} {
		if got := plan(tt.flags...); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.flags, got, tt.want)
		}
	}
}

// TestRotation: packages that were never run come first, then the least recently run ones.
func TestRotation(t *testing.T) {
	now := time.Date(2026, time.November, 26, 0, 0, 0, 0, time.UTC)
	part := func(name string) call { return call{packages: []pkg{{".", name}}} }
	got := inOrder([]call{part("a"), part("b"), part("c")}, map[string]past{"a": {now, 5}, "b": {now.Add(-time.Hour), 5}}, now)
	var names []string
	for _, c := range got {
		names = append(names, c.packages[0].dir)
	}
	if want := []string{"c", "b", "a"}; !slices.Equal(names, want) {
		t.Errorf("the order is %q, want %q", names, want)
	}
}

func TestReport(t *testing.T) {
	for name, tt := range map[string]struct {
		lines string
		want  []string
		fails bool
	}{
		"a test that fails shows what it says": {
			`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN TestA\n"}
			{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: wrong\n"}
			{"Action":"fail","Package":"p","Test":"TestA"}
			{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
			{"Action":"fail","Package":"p","Elapsed":0.1}`,
			[]string{"a_test.go:1: wrong", "FAIL\tp", "failed: p", "0 passed, 1 failed, 0 skipped"},
			true,
		},
		"a test that passes is silent, and one that is skipped says why at the end": {
			`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: chatter\n"}
			{"Action":"pass","Package":"p","Test":"TestA"}
			{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:2: only with -full: all of it\n"}
			{"Action":"skip","Package":"p","Test":"TestB"}
			{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
			{"Action":"pass","Package":"p","Elapsed":0.1}`,
			[]string{"ok  \tp", "skipped: only with -full: all of it (1 in p)", "1 passed, 0 failed, 1 skipped"},
			false,
		},
		"a test that never ended shows what it says": {
			`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: at once\n"}
			{"Action":"fail","Package":"p"}`,
			[]string{"panic: at once", "0 passed, 1 failed"},
			true,
		},
		"a package that does not build": {
			`{"ImportPath":"p","Action":"build-output","Output":"a.go:1:1: syntax error\n"}
			{"Action":"fail","Package":"p"}`,
			[]string{"syntax error", "failed: p"},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := newReport(&out, false)
			events(strings.NewReader(tt.lines+"\n"), r)
			if err := r.close(); (err != nil) != tt.fails {
				t.Errorf("the result is %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the report lacks %q:\n%s", want, &out)
				}
			}
			if strings.Contains(out.String(), "chatter") {
				t.Errorf("the report has what a test says that passed:\n%s", &out)
			}
		})
	}
}
