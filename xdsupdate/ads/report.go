// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
)

// reportFailures reports what has failed, and asks for a later push if something may
// be left undone. No lock is held.
func (s *Server) reportFailures() {
	errs, list, retry := s.cache.failures.Take()
	for _, err := range errs {
		s.logger.Warn("resource not updated", slog.Any("error", err))
		s.observing(func(o Observer) { o.Failed(err) })
	}
	for _, p := range list {
		s.panicked(PanicEvent{In: p.In, Name: p.Name, Times: p.Times, Err: p.First, Stack: p.Stack})
	}
	if retry {
		s.unsure.Store(true)
		s.pusher.Retry()
	}
}

// panicked logs a panic, and has the observer count it.
func (s *Server) panicked(e PanicEvent) {
	s.logger.Error("panic", slog.String("what", failure.Part{In: e.In, Name: e.Name}.String()), slog.Any("error", e.Err),
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
		s.panicked(PanicEvent{In: failure.InObserver, Times: 1, Err: p, Stack: p.Stack})
	}
}

// endedBy ends a stream by the panic of what runs it.
func (s *stream) endedBy(p *guard.PanicError) {
	if p == nil {
		return
	}
	s.end(errInternal())
	s.server.cache.failures.Add(failure.Part{In: failure.InStream}.Wrap(p))
	s.server.reportFailures()
}

func errInternal() error { return status.Error(codes.Internal, "internal error") }

// safeHandler keeps the panics of the program's log handler from what is logged.
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
