// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// The failures of a lookup that are not errors of the host's function.
var (
	errOverdue = errors.New("there is no answer yet")
	errTooMany = errors.New("too many lookups have not ended")
	errEnded   = errors.New("the function has ended its goroutine")
)

// panicError reports a panic of the host's code. The value of the panic is not part of the error,
// because it may contain a secret.
type panicError struct{ stack string }

// Error returns the same text for all panics.
func (*panicError) Error() string { return "the function panicked" }

// newPanicError must be called by the function that recovers. Its stack has names and lines only,
// because the arguments in the stack of runtime/debug may be keys.
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

// attrs returns the log attributes for an error of name. If the error is a panic, attrs also
// notifies the observer.
func (o *Options) attrs(name string, err error) []any {
	out := []any{slog.Any("error", err)}
	var p *panicError
	if !errors.As(err, &p) {
		return out
	}
	if o.Observer != nil {
		_ = guard.Call(func() {
			o.Observer.Panicked(ads.PanicEvent{In: "secret", Name: name, Times: 1, Err: err, Stack: p.stack})
		})
	}
	return append(out, slog.String("stack", p.stack))
}
