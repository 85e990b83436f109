// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Observer sees what the server does, for metrics. Its methods are called from
// many goroutines, with no lock held, in the path of what they see: they should
// be fast. Embed NoObserver to be safe from methods that are added.
type Observer interface {
	// StreamOpened and StreamClosed: of a stream that is refused at once only the
	// second is called. Err is why it ended, nil if the client ended it.
	StreamOpened(s Stream)
	StreamClosed(s Stream, err error)
	// Request: a request was handled.
	Request(s Stream, r RequestEvent)
	// Response: a response was handed to gRPC.
	Response(s Stream, r ResponseEvent)
	// Pushed: a push has ended; what is new was queued for whom it concerns.
	Pushed(p PushEvent)
	// Converged: a client has accepted a response, so long after the newest push in
	// it was asked for. The first answers to a subscription are not of a push.
	Converged(s Stream, typeURL string, after time.Duration)
	// Failed: a resource is not as it should be, because it, or what some object
	// contributes to it, cannot be made or would be refused: it keeps its last state, or
	// is sent without that part. Err names the resource and, as far as is known, the
	// object. It is reported once for as long as it stays the same.
	Failed(err error)
	// Panicked: something has panicked, and cost only where it was: see "Panics" in
	// the package comment.
	Panicked(p PanicEvent)
}

// Stream is what an Observer receives about a stream.
type Stream struct {
	// ID counts the streams of the server.
	ID    uint64
	Delta bool
	// Node is the node's ID and View what it can see, once its first request was
	// handled.
	Node string
	View View
}

// RequestEvent is a request. With Nonce it answers a response: with Refused by a
// refusal, for which Error is the reason.
type RequestEvent struct {
	TypeURL string
	Bytes   int
	Nonce   string
	Refused bool
	Error   string
}

// ResponseEvent is a response.
type ResponseEvent struct {
	TypeURL, Version, Nonce string
	// Resources and Removed count the resources in it and those that it removes.
	Resources, Removed int
	Bytes              int
}

// PushEvent is a push.
type PushEvent struct {
	Request *xdsupdate.PushRequest
	// Waited is how long the oldest request in it had been debounced, Took how long
	// the push took.
	Waited, Took time.Duration
}

// PanicEvent is the panics of one part that were reported together: those of one push
// or request.
type PanicEvent struct {
	// In is the part, one of few texts: "configs", "customizer", "generator",
	// "group", "host", "observer", "provider", "proxy", "push", "resource", "services",
	// "stream"; package secrets adds "secret".
	In string
	// Name is the name of the customizer, generator, host, provider or secret;
	// otherwise "".
	Name string
	// Times is how many there were, Err the first of them and Stack its stack.
	Times int
	Err   error
	Stack string
}

// The values of PanicEvent.In.
const (
	partConfigs    = "configs"
	partCustomizer = "customizer"
	partGenerator  = "generator"
	partGroup      = "group"
	partHost       = "host"
	partObserver   = "observer"
	partProvider   = "provider"
	partProxy      = "proxy"
	partPush       = "push"
	partResource   = "resource"
	partServices   = "services"
	partStream     = "stream"
)

// NoObserver is an Observer that does nothing.
type NoObserver struct{}

var _ Observer = NoObserver{}

// StreamOpened does nothing.
func (NoObserver) StreamOpened(Stream) {}

// StreamClosed does nothing.
func (NoObserver) StreamClosed(Stream, error) {}

// Request does nothing.
func (NoObserver) Request(Stream, RequestEvent) {}

// Response does nothing.
func (NoObserver) Response(Stream, ResponseEvent) {}

// Pushed does nothing.
func (NoObserver) Pushed(PushEvent) {}

// Converged does nothing.
func (NoObserver) Converged(Stream, string, time.Duration) {}

// Failed does nothing.
func (NoObserver) Failed(error) {}

// Panicked does nothing.
func (NoObserver) Panicked(PanicEvent) {}

// observe reports a request that was handled.
func (s *stream) observe(r *request, h handling) {
	for _, refusal := range h.refused {
		s.server.refusal(s, r.typeURL, refusal)
	}
	refused, text := r.refused, r.text
	if r.answered.tellsAbsence() {
		refused, text = false, ""
	}
	s.server.observing(func(o Observer) {
		o.Request(*s.about.Load(), RequestEvent{TypeURL: r.typeURL, Bytes: r.bytes, Nonce: r.nonce, Refused: refused, Error: text})
		if h.isAnswer && !refused && !r.answered.since.IsZero() {
			o.Converged(*s.about.Load(), r.typeURL, time.Since(r.answered.since))
		}
	})
}

// refusal logs that a proxy has refused a resource, or a response of which it is not
// known yet what it refuses. What is refused again for the same reason is not logged
// again.
func (s *Server) refusal(st *stream, typeURL string, r Refusal) {
	s.logger.Warn("resources refused", slog.String("node", st.about.Load().Node), slog.String("type_url", typeURL),
		slog.String("resource", r.Name), slog.String("version", r.Version), slog.String("reason", r.Error))
}

// refused logs that a stream was ended for what it is or does, with the ID that it
// gave itself: one that is refused at once has no identity yet.
func (s *Server) refused(st *stream, err error) {
	if status.Code(err) != codes.Unavailable {
		s.logger.Warn("stream refused", slog.String("node", st.conn.node.GetId()), slog.Any("error", err))
	}
}

// connected logs that a stream has got an identity.
func (s *Server) connected(st *stream) {
	about := st.about.Load()
	s.logger.Debug("proxy connected", slog.String("node", about.Node), slog.Bool("delta", about.Delta), slog.Any("view", about.View))
}

// closed reports the end of a stream.
func (s *Server) closed(st *stream) {
	s.logger.Debug("proxy disconnected", slog.String("node", st.about.Load().Node), slog.Any("error", st.err))
	s.observing(func(o Observer) { o.StreamClosed(*st.about.Load(), st.err) })
}
