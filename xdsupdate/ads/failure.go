// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// part is what can fail by itself.
type part struct {
	in   string // one of few texts
	name string // which of them; "" if there is only one
}

func (p part) String() string {
	if p.name == "" {
		return p.in
	}
	return p.in + " " + p.name
}

// partError says which part an error is from.
type partError struct {
	part
	err error
}

// Error begins with the part.
func (e *partError) Error() string { return e.String() + ": " + e.err.Error() }

// Unwrap returns the part's error.
func (e *partError) Unwrap() error { return e.err }

func (p part) wrap(err error) error {
	if err == nil {
		return nil
	}
	return &partError{p, err}
}

// call calls a function of the host's. A panic is an error.
func (p part) call(f func() error) error {
	var err error
	if panicked := guard.Call(func() { err = f() }); panicked != nil {
		err = panicked
	}
	return p.wrap(err)
}

var errIncomparable = errors.New("not comparable")

// checkKey refuses a value that cannot be the key of a map.
func checkKey(v any) error {
	if v == nil || reflect.ValueOf(v).Comparable() {
		return nil
	}
	return fmt.Errorf("%T is %w", v, errIncomparable)
}

// failures are errors that wait to be reported: they are noted wherever they are,
// under locks too, and reported where none is held. Panics of one part are reported
// as one, so that what panics for each of 100,000 names fills neither the memory nor
// the log.
type failures struct {
	mu     sync.Mutex
	errs   []error
	panics []panics
	// retry: what has failed may have left something undone.
	retry bool
}

// panics are those of one part.
type panics struct {
	part
	first error
	stack string
	times int
}

// add notes an error; nil is none.
func (f *failures) add(err error) {
	if err == nil {
		return
	}
	var panicked *guard.PanicError
	f.mu.Lock()
	defer f.mu.Unlock()
	if !errors.As(err, &panicked) {
		f.errs = append(f.errs, err)
		return
	}
	of := part{in: partResource}
	var from *partError
	if errors.As(err, &from) {
		of = from.part
	}
	for i := range f.panics {
		if f.panics[i].part == of {
			f.panics[i].times++
			return
		}
	}
	f.panics = append(f.panics, panics{part: of, first: err, stack: panicked.Stack, times: 1})
}

// undone notes an error that may have left something undone, which a later push of
// everything makes up for.
func (f *failures) undone(err error) {
	if err == nil {
		return
	}
	f.add(err)
	f.mu.Lock()
	f.retry = true
	f.mu.Unlock()
}

func (f *failures) take() (errs []error, list []panics, retry bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	errs, list, retry = f.errs, f.panics, f.retry
	f.errs, f.panics, f.retry = nil, nil, false
	return errs, list, retry
}

// reportFailures reports what has failed, and asks for a later push if something may
// be left undone. No lock is held.
func (s *Server) reportFailures() {
	errs, list, retry := s.cache.failures.take()
	for _, err := range errs {
		s.logger.Warn("resource not updated", slog.Any("error", err))
		s.observing(func(o Observer) { o.Failed(err) })
	}
	for _, p := range list {
		s.panicked(PanicEvent{In: p.in, Name: p.name, Times: p.times, Err: p.first, Stack: p.stack})
	}
	if retry {
		s.unsure.Store(true)
		s.pusher.Retry()
	}
}

// panicked logs a panic, and has the observer count it.
func (s *Server) panicked(e PanicEvent) {
	s.logger.Error("panic", slog.String("what", part{e.In, e.Name}.String()), slog.Any("error", e.Err),
		slog.Int("times", e.Times), slog.String("stack", e.Stack))
	if s.observer != nil {
		_ = guard.Call(func() { s.observer.Panicked(e) })
	}
}

// observing calls the observer, if there is one.
func (s *Server) observing(see func(o Observer)) {
	if s.observer == nil {
		return
	}
	if p := guard.Call(func() { see(s.observer) }); p != nil {
		s.panicked(PanicEvent{In: partObserver, Times: 1, Err: p, Stack: p.Stack})
	}
}

// endedBy ends a stream by the panic of what runs it.
func (s *stream) endedBy(p *guard.PanicError) {
	if p == nil {
		return
	}
	s.end(errInternal())
	s.server.cache.failures.add(part{in: partStream}.wrap(p))
	s.server.reportFailures()
}

func errInternal() error { return status.Error(codes.Internal, "internal error") }

// safeHandler keeps the panics of the host's log handler from what is logged.
type safeHandler struct{ slog.Handler }

// Enabled reports false if the handler panics.
func (h safeHandler) Enabled(ctx context.Context, level slog.Level) (out bool) {
	_ = guard.Call(func() { out = h.Handler.Enabled(ctx, level) })
	return out
}

// Handle drops a record for which the handler panics.
func (h safeHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	_ = guard.Call(func() { err = h.Handler.Handle(ctx, r) })
	return err
}
