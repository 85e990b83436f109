// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// incoming is a received response, or the error that ended the stream.
type incoming struct {
	response *response
	err      error
}

// session is one stream. It returns why it has ended.
func (s *Source) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	p, err := s.open(ctx, s.delta)
	if err != nil {
		return err
	}
	out, in := newOutbox(), make(chan incoming)
	running.Go(func() { out.run(ctx) })
	running.Go(func() { receive(ctx, p, in) })
	s.connected(s.delta)
	s.subscribe(p, out)
	s.ask(false)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.reply(p, out)
		if next := s.deadline(); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case m := <-in:
			if m.err != nil {
				return streamError(m.err)
			}
			s.hear(m.response)
			s.handle(m.response)
		case <-timer.C:
			s.elapse(time.Now())
			if err := s.askAgain(p, out); err != nil {
				return streamError(err)
			}
		case <-ctx.Done():
			return context.Cause(ctx) //nolint:wrapcheck // of Run
		}
	}
}

// receive forwards the responses of the peer until the stream ends.
func receive(ctx context.Context, p peer, in chan<- incoming) {
	for {
		r, err := p.receive()
		select {
		case in <- incoming{r, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// subscribe requests all kinds. The first request has the node.
func (s *Source) subscribe(p peer, out *outbox) {
	for i, k := range s.kinds {
		var node *core.Node
		if i == 0 {
			node = s.opts.Node
		}
		url := k.typeURL
		var known map[string]string
		if s.delta {
			known = k.known()
		}
		out.put(func() error { return p.subscribe(url, known, node) })
	}
}

// handle applies a response.
func (s *Source) handle(r *response) {
	k, ok := s.byType[r.typeURL]
	if !ok {
		// An answer would be a subscription.
		if s.foreign++; s.foreign == 1 {
			s.opts.Logger.Warn("response of a type that was not requested", slog.String("type_url", r.typeURL))
		}
		s.publish()
		return
	}
	if k.holds(r, s.opts.EmptyHold) {
		k.hold(r, time.Now().Add(s.opts.EmptyHold))
		k.accept(r, "")
		s.publish()
		s.opts.Logger.Warn("empty response is held back", slog.String("type_url", r.typeURL), slog.Int("objects", k.written))
		return
	}
	k.reconsider(r)
	errs := s.apply(k, r)
	refusal := refusalText(errs)
	k.accept(r, refusal)
	if refusal == "" || k.usable > 0 {
		s.retry.Reset()
	}
	s.applied(k)
}

// applied records that the store has the content of a response.
func (s *Source) applied(k *sourceKind) {
	k.answered, k.synced = true, true
	s.mu.Lock()
	s.status.Applied = time.Now()
	s.mu.Unlock()
	s.publish()
	s.sync()
}

// elapse handles the timers that have expired.
func (s *Source) elapse(now time.Time) {
	for _, k := range s.kinds {
		if k.held != nil && !now.Before(k.heldUntil) {
			r := k.held
			k.release()
			s.apply(k, r)
			s.retry.Reset()
			s.applied(k)
		}
	}
	if s.refused && !now.Before(s.retryAt) {
		s.write(nil)
		s.publish()
	}
}

// reply sends the replies whose time has come.
func (s *Source) reply(p peer, out *outbox) {
	now := time.Now()
	for _, k := range s.kinds {
		due := len(k.replies)
		if due > 0 && now.Before(k.replyAt) {
			due--
		}
		for _, r := range k.replies[:due] {
			out.put(func() error { return p.answer(r) })
		}
		k.replies = slices.Delete(k.replies, 0, due)
	}
}

// deadline returns when elapse, reply or askAgain has something to do next. The zero time means never.
func (s *Source) deadline() (next time.Time) {
	at := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, k := range s.kinds {
		if k.held != nil {
			at(k.heldUntil)
		}
		if len(k.replies) > 0 {
			at(k.replyAt)
		}
	}
	if s.refused {
		at(s.retryAt)
	}
	if !s.asking.next.IsZero() {
		at(s.asking.next)
	}
	return next
}

// apply brings the store to the content of a response, and returns the errors of its objects.
func (s *Source) apply(k *sourceKind, r *response) []*Error {
	dirty := k.take(r, s.decode)
	s.write(dirty)
	return k.errorsOfLast()
}
