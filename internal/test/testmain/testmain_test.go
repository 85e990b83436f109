// SPDX-License-Identifier: Apache-2.0

package testmain

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/limit"
)

// caseVariable names the environment variable with the case that TestCase is to run.
const caseVariable = "PILOTKIT_TESTMAIN_CASE"

func runtimeError() {
	_ = os.Args[len(os.Args)]
}

// notClosed is no regular expression.
var notClosed = "("

// cases are tests, and whether they pass.
//
//nolint:thelper // They are tests.
var cases = map[string]struct {
	run    func(t *testing.T)
	passes bool
}{
	"a panic of a test": {func(*testing.T) { _ = guard.Call(func() { panic("a handler") }) }, true},
	"a panic with nil":  {func(*testing.T) { _ = guard.Call(func() { panic(nil) }) }, true},
	"a runtime error":   {func(*testing.T) { _ = guard.Call(runtimeError) }, false},
	"a panic elsewhere": {func(*testing.T) { _ = guard.Call(func() { regexp.MustCompile(notClosed) }) }, false},
	"an expected runtime error": {func(t *testing.T) {
		ExpectPanic(t, "index out of range")
		_ = guard.Call(runtimeError)
	}, true},
	"an expected panic, by its stack": {func(t *testing.T) {
		ExpectPanic(t, "runtimeError")
		_ = guard.Call(runtimeError)
	}, true},
	"another one": {func(t *testing.T) {
		ExpectPanic(t, "nil map")
		_ = guard.Call(runtimeError)
	}, false},
	"none": {func(t *testing.T) { ExpectPanic(t, "index out of range") }, false},
	"one of another test": {func(t *testing.T) {
		t.Run("first", func(t *testing.T) {
			ExpectPanic(t, "index out of range")
			_ = guard.Call(runtimeError)
		})
		_ = guard.Call(runtimeError)
	}, false},
	"sizes": {func(t *testing.T) {
		if n := limit.Size(8).Get(); n != 8 {
			t.Errorf("a size is %d", n)
		}
	}, true},
}

// TestCase runs one case, in a process of its own.
func TestCase(t *testing.T) {
	c, ok := cases[os.Getenv(caseVariable)]
	if !ok {
		t.Skip("this is for TestVerify")
	}
	c.run(t)
}

// TestVerify: a process passes unless a panic was recovered that no test asked for, or one was
// expected that did not come.
func TestVerify(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCase$")
			cmd.Env = append(os.Environ(), caseVariable+"="+name)
			if out, err := cmd.CombinedOutput(); (err == nil) != c.passes {
				t.Errorf("%v, want that it passes: %t\n%s", err, c.passes, out)
			}
		})
	}
}

// TestSizes is run by TestLowered.
func TestSizes(t *testing.T) {
	for _, size := range []limit.Size{1, 2, 100} {
		if got := size.Get(); os.Getenv(limitVariable) != "" && got > 3 || got > int(size) || got < 1 {
			t.Errorf("%d is %d", size, got)
		}
	}
}

func TestLowered(t *testing.T) { Lowered(t, "^TestSizes$") }
