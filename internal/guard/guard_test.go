// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func explode() { panic(io.EOF) }

func TestCallReturnsThePanic(t *testing.T) {
	p := guard.Call(explode)
	if p == nil {
		t.Fatal("no panic")
	}
	if !errors.Is(p, io.EOF) || p.Error() != "panic: EOF" {
		t.Errorf("error = %q", p)
	}
	if !strings.Contains(p.Stack, "guard_test.explode") {
		t.Errorf("the stack is not that of the panic: %s", p.Stack)
	}
	if p := guard.Call(func() {}); p != nil {
		t.Errorf("a call that returns: %v", p)
	}
	testmain.ExpectPanic(t, "nil pointer")
	var none *int
	if p := guard.Call(func() { *none = 1 }); p == nil || p.Unwrap() == nil {
		t.Errorf("an error of the runtime: %v", p)
	}
	if p := guard.Call(func() { panic(nil) }); p == nil { //nolint:govet // nil is the case
		t.Error("a panic with nil is lost")
	}
}

func TestErrorIsBounded(t *testing.T) {
	p := guard.Call(func() { panic(strings.Repeat("x", 1<<20)) })
	if n := len(p.Error()); n > 5000 {
		t.Errorf("%d bytes", n)
	}
}

func TestDefectPasses(t *testing.T) {
	defer func() {
		if got := recover(); got != guard.Defect("wrong") {
			t.Errorf("recovered %v", got)
		}
	}()
	_ = guard.Call(func() { panic(guard.Defect("wrong")) })
}

func TestGoexitPasses(t *testing.T) {
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = guard.Call(runtime.Goexit)
		returned = true
	}()
	<-done
	if returned {
		t.Error("Call returned")
	}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	p := guard.Call(explode)
	p.Log(logger, "handler", slog.String("object", "a/b"))
	line := out.String()
	for _, want := range []string{`level=ERROR msg=panic what=handler error="panic: EOF" object=a/b stack=`, "guard_test.explode"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %s", want, line)
		}
	}
	if n := strings.Count(line, "\n"); n != 1 {
		t.Errorf("%d lines", n)
	}
	out.Reset()
	(*guard.PanicError)(nil).Log(logger, "handler")
	p.Log(nil, "handler")
	if out.Len() > 0 {
		t.Errorf("logged %s", out.String())
	}
}

// panicking is a handler of log records that panics.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("the logger") }

func TestLoggerThatPanics(*testing.T) {
	guard.Call(explode).Log(slog.New(panicking{}), "handler")
}
