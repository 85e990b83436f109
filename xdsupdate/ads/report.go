// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
)

// reportFailures reports failures, and requests a later push if work may be left undone. No lock is
// held.
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

// endedBy ends a stream because of a panic.
func (s *stream) endedBy(p *guard.PanicError) {
	if p == nil {
		return
	}
	s.end(errInternal)
	s.server.cache.failures.Add(failure.Part{In: failure.InStream}.Wrap(p))
	s.server.reportFailures()
}

var errInternal = status.Error(codes.Internal, "internal error")

// safeHandler recovers panics of the program's log handler.
type safeHandler struct{ slog.Handler }

// Enabled reports false if the handler panics.
func (h safeHandler) Enabled(ctx context.Context, level slog.Level) (out bool) {
	_ = guard.Call(func() { out = h.Handler.Enabled(ctx, level) })
	return out
}

// Handle drops a record if the handler panics.
func (h safeHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	_ = guard.Call(func() { err = h.Handler.Handle(ctx, r) })
	return err
}

// connected reports that a stream has got an identity.
func (s *Server) connected(st *stream) {
	st.opened.Store(true)
	about := *st.about.Load()
	s.logger.Debug("proxy connected", slog.String("node", about.Node), slog.Bool("delta", about.Delta), slog.Any("view", about.View))
	s.observing(func(o Observer) { o.StreamOpened(about) })
}

// closed reports the end of a stream, if it was opened.
func (s *Server) closed(st *stream) {
	if !st.opened.Load() {
		return
	}
	about := *st.about.Load()
	s.logger.Debug("proxy disconnected", slog.String("node", about.Node), slog.Any("error", st.err))
	s.observing(func(o Observer) { o.StreamClosed(about, st.err) })
}

// refused reports that a stream was rejected or ended because of its requests, with the node ID of
// the request, because a rejected stream has no identity yet. Clients retry, so the same error is
// logged once a minute.
func (s *Server) refused(st *stream, err error) {
	if errors.Is(err, errStopping) {
		return
	}
	about := *st.about.Load()
	about.Node, about.View = st.conn.node.GetId(), View{}
	if reason := status.Convert(err); s.refusals.Allow(reason.Message()+"\x00"+about.Node, reason.Code().String()) {
		s.logger.Warn("stream refused", slog.String("node", about.Node), slog.Any("error", err))
	}
	if !st.opened.Load() { // else it is closed
		s.observing(func(o Observer) { o.StreamRefused(about, err) })
	}
}

var errStopping = status.Error(codes.Unavailable, "the server is stopping")

// observe reports a request that was handled. A repeated rejection with the same reason is not logged again.
func (s *stream) observe(r *received, h handling) {
	for _, f := range h.refused {
		s.server.logger.Warn("resources refused", slog.String("node", s.about.Load().Node), slog.String("type_url", r.TypeURL),
			slog.String("resource", f.Name), slog.String("version", f.Version), slog.String("reason", f.Text))
	}
	refused, text := r.Refused, r.Text
	if r.answered.TellsAbsence() {
		refused, text = false, ""
	}
	s.server.observing(func(o Observer) {
		o.Request(*s.about.Load(), RequestEvent{TypeURL: r.TypeURL, Bytes: r.Bytes, Nonce: r.Nonce, Refused: refused, Error: text})
		if h.isAnswer && !refused && !r.answered.PushedAt.IsZero() {
			o.Converged(*s.about.Load(), r.TypeURL, time.Since(r.answered.PushedAt))
		}
	})
}

// overdue reports that a client does not answer responses of some types.
func (s *stream) overdue(types []string, after time.Duration) {
	about := *s.about.Load()
	for _, typeURL := range types {
		s.server.logger.Warn("response not answered", slog.String("node", about.Node),
			slog.String("type_url", typeURL), slog.Duration("after", after))
		s.server.observing(func(o Observer) { o.Overdue(about, typeURL, after) })
	}
}
