// SPDX-License-Identifier: Apache-2.0

// Package testmain runs the tests of a package and fails them for problems that no single test
// looks for: a leaked goroutine, and a panic that the library recovered.
//
// Call [Verify] in TestMain of each package:
//
//	func TestMain(m *testing.M) { testmain.Verify(m) }
//
// A panic that the library recovers is expected if a test calls panic itself, as in a handler
// that a test registers. Any other fails the tests: a nil pointer, or a panic of the
// library. A test that provokes one says so by [ExpectPanic].
//
// [Lowered] runs tests of the package once more with all sizes of internal/limit lowered.
package testmain

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"go.uber.org/goleak"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/limit"
)

// Verify runs the tests, and ends the process with an error if one fails, a goroutine is
// left, or an unexpected panic was recovered.
func Verify(m goleak.TestingM, options ...goleak.Option) {
	if most, err := strconv.Atoi(os.Getenv(limitVariable)); err == nil {
		limit.Lower(most)
	}
	goleak.VerifyTestMain(watched{m}, options...)
}

// watched are tests that fail if a panic is recovered.
type watched struct{ goleak.TestingM }

// Run implements goleak.TestingM.
func (w watched) Run() int {
	guard.Watch(seen.add)
	defer guard.Watch(nil)
	code := w.TestingM.Run()
	if n := seen.unexpected.Load(); n > 0 && code == 0 {
		fmt.Fprintf(os.Stderr, "FAIL: %d unexpected panics were recovered; their stacks are above\n", n)
		return 1
	}
	return code
}

// byTest reports whether code of a test called panic: the caller is the frame below the first
// "panic(" of the stack.
func byTest(p *guard.PanicError) bool {
	if err := runtime.Error(nil); errors.As(p, &err) && !errors.As(p, new(*runtime.PanicNilError)) {
		return false // The runtime did.
	}
	_, below, found := strings.Cut(p.Stack, "\npanic(")
	lines := strings.SplitN(below, "\n", 5)
	if !found || len(lines) < 4 {
		return false
	}
	file, _, _ := strings.Cut(strings.TrimSpace(lines[3]), ".go:")
	folder := file[:max(0, strings.LastIndexByte(file, '/'))]
	return strings.HasSuffix(file, "_test") || strings.HasSuffix(folder, "test") || strings.Contains(folder, "/internal/test/")
}
