// SPDX-License-Identifier: Apache-2.0

// Package guard confines a panic to the call that caused it. Code that calls a function of the
// host, or converts one object of many, does so through [Call]. If the call panicked, the caller
// keeps the last state of the call's result, and logs the [PanicError].
//
// All panics that the library recovers pass through [Recovered], where tests [Watch] them.
//
// Some panics are not recovered: a [Defect] passes, as do runtime.Goexit and fatal errors of the
// runtime (a stack overflow, concurrent map writes).
package guard

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Defect is the value of a panic that must not be recovered, for example of a check that a host
// enables in order to be stopped by it.
type Defect string

func (d Defect) String() string { return string(d) }

// PanicError is a recovered panic as an error.
type PanicError struct {
	// Value is the value of the panic.
	Value any
	// Stack is the text of the goroutine's stack.
	Stack string
}

// maxText is the number of bytes that Error shows of a value: it may be anything.
const maxText = 4096

// Error begins with "panic: " and shows the beginning of the value.
func (p *PanicError) Error() string {
	text := fmt.Sprintf("panic: %v", p.Value)
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	return text
}

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Call calls f, and returns nil or the panic of f.
func Call(f func()) (p *PanicError) {
	defer func() { p = Recovered(recover()) }()
	f()
	return nil
}

// Confine calls f, which handles one object of many. It logs a panic of f, so that the caller goes on
// with the other objects; with a nil logger, it panics again.
func Confine(logger *slog.Logger, what, object string, f func()) {
	p := Call(f)
	if logger == nil {
		p.Again()
	}
	p.Log(logger, what, slog.String("object", object))
}

// Recovered makes a PanicError of what recover has returned; of nil it makes nil. Call
// it in the deferred function that calls recover, which is where the stack is
// still that of the panic. A Defect panics again.
func Recovered(value any) *PanicError {
	switch value := value.(type) {
	case nil:
		return nil
	case Defect:
		panic(value)
	case *PanicError:
		return value
	default:
		p := &PanicError{Value: value, Stack: string(debug.Stack())}
		watched(p)
		return p
	}
}

// Again panics with p, unless it is nil: who calls many functions calls all of them
// before. Recovered then returns p itself, with the stack of the first panic.
func (p *PanicError) Again() {
	if p != nil {
		panic(p)
	}
}

// Log writes one record, at level Error, with the message "panic": what panicked, the value, the
// given attributes, and the stack. A panic of the logger itself is dropped. With a nil logger or a
// nil p, Log does nothing.
func (p *PanicError) Log(logger *slog.Logger, what string, attrs ...slog.Attr) {
	if p == nil || logger == nil {
		return
	}
	args := []any{slog.String("what", what), slog.String("error", p.Error())}
	for _, a := range attrs {
		args = append(args, a)
	}
	defer func() { _ = Recovered(recover()) }()
	logger.Error("panic", append(args, slog.String("stack", p.Stack))...)
}
