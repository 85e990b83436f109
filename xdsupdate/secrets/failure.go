// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
)

// What becomes of a lookup besides an answer.
var (
	errOverdue = errors.New("there is no answer yet")
	errTooMany = errors.New("too many lookups have not ended")
	errEnded   = errors.New("the function has ended its goroutine")
)

// panicError says that code of the host panicked. What with may be anything, so it
// is not shown.
type panicError struct{ stack string }

// Error returns the same text for all panics.
func (*panicError) Error() string { return "the function panicked" }

// newPanicError is called by the function that recovers. The stack has names and
// lines: runtime/debug would print arguments, and they may be keys.
func newPanicError() *panicError {
	var b strings.Builder
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
	}
	return &panicError{b.String()}
}

// attrs are what is logged of an error.
func attrs(err error) []any {
	out := []any{slog.Any("error", err)}
	if p := (*panicError)(nil); errors.As(err, &p) {
		out = append(out, slog.String("stack", p.stack))
	}
	return out
}
