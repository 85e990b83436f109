// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"log/slog"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// streamLife is what was reported of a stream. It is opened on one goroutine and closed
// on another, and what counts streams must see them in that order.
type streamLife struct {
	// mu is held while an Observer is called: it makes the end of a stream wait for the
	// report of its beginning, and nothing else.
	mu             sync.Mutex
	opened, closed bool
}

// connected reports that a stream has got an identity, unless it has ended.
func (s *Server) connected(st *stream) {
	st.life.mu.Lock()
	defer st.life.mu.Unlock()
	if st.life.closed {
		return
	}
	st.life.opened = true
	about := *st.about.Load()
	s.logger.Debug("proxy connected", slog.String("node", about.Node), slog.Bool("delta", about.Delta), slog.Any("view", about.View))
	s.observing(func(o Observer) { o.StreamOpened(about) })
}

// closed reports the end of a stream, if it was opened.
func (s *Server) closed(st *stream) {
	st.life.mu.Lock()
	st.life.closed = true
	opened := st.life.opened
	st.life.mu.Unlock()
	if !opened {
		return
	}
	about := *st.about.Load()
	s.logger.Debug("proxy disconnected", slog.String("node", about.Node), slog.Any("error", st.err))
	s.observing(func(o Observer) { o.StreamClosed(about, st.err) })
}

// refused reports that a stream is ended for what it is or does, with the ID that it gave
// itself: one that is refused at once has no identity yet. A client tries again, and again;
// what it is told is logged once a minute.
func (s *Server) refused(st *stream, err error) {
	if isStopping(err) {
		return
	}
	about := *st.about.Load()
	about.Node, about.View = st.conn.node.GetId(), View{}
	if reason := status.Convert(err); s.refusals.Allow(reason.Message()+"\x00"+about.Node, reason.Code().String()) {
		s.logger.Warn("stream refused", slog.String("node", about.Node), slog.Any("error", err))
	}
	st.life.mu.Lock()
	opened := st.life.opened
	st.life.mu.Unlock()
	if !opened { // else it is closed
		s.observing(func(o Observer) { o.StreamRefused(about, err) })
	}
}

const stoppingText = "the server is stopping"

func errStopping() error { return status.Error(codes.Unavailable, stoppingText) }

// isStopping reports whether an error is errStopping.
func isStopping(err error) bool {
	s := status.Convert(err)
	return s.Code() == codes.Unavailable && s.Message() == stoppingText
}
