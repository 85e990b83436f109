// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Observer sees what the server does, for metrics. Its methods are called from
// many goroutines, with no lock held, in the path of what they see: they should
// be fast. Embed NoObserver to be safe from methods that are added.
type Observer interface { //nolint:interfacebloat // NoObserver has them all
	// StreamOpened: it is known whose the stream is, and Node and View are set. Of a
	// stream it is called once, before anything else. One that ends before that reaches
	// StreamRefused, or, if the client or a stop of the server ended it, nothing.
	StreamOpened(s Stream)
	// StreamClosed: a stream that was opened has ended. It is called once for each
	// StreamOpened, after that has returned or panicked, and never otherwise: the number
	// of streams is that of the calls of StreamOpened without those of StreamClosed, and 0
	// when Run has returned. Err is why it ended, nil if the client ended it. What is under
	// way then may still reach Request, Response and Converged.
	StreamClosed(s Stream, err error)
	// StreamRefused: the server does not open a stream, by Limits, because Options.Proxy
	// does not know the proxy, or for what its first request is. Node is the ID that the
	// proxy gave itself, "" if it has said none; View is not set. Err is what the client is told.
	StreamRefused(s Stream, err error)
	// Request: a request was handled.
	Request(s Stream, r RequestEvent)
	// Response: a response was handed to gRPC.
	Response(s Stream, r ResponseEvent)
	// Pushed: a push has ended; what is new was queued for whom it concerns.
	Pushed(p PushEvent)
	// Converged: a client has accepted a response, so long after the newest push in
	// it was asked for. The first answers to a subscription are not of a push.
	Converged(s Stream, typeURL string, after time.Duration)
	// Overdue: a client has not answered a response for so long (Options.PhaseTimeout),
	// and what has waited for the answer is sent.
	Overdue(s Stream, typeURL string, after time.Duration)
	// Failed: a resource is not as it should be, because it, or what some object
	// contributes to it, cannot be made or would be refused: it keeps its last state, or
	// is sent without that part. Err names the resource by type and name, a view
	// that it is for (others may share it) and, as far as is known, the
	// object. It is reported once for as long as it stays the same.
	Failed(err error)
	// Panicked: something has panicked, and cost only where it was: see "Panics" in
	// the package comment.
	Panicked(p PanicEvent)
}

// Stream is what an Observer receives about a stream.
type Stream struct {
	// ID counts the streams of the server; 0: it was refused at once.
	ID    uint64
	Delta bool
	// Node is the node's ID and View what it can see: see StreamOpened and StreamRefused.
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

// NoObserver is an Observer that does nothing.
type NoObserver struct{}

var _ Observer = NoObserver{}

// StreamOpened does nothing.
func (NoObserver) StreamOpened(Stream) {}

// StreamClosed does nothing.
func (NoObserver) StreamClosed(Stream, error) {}

// StreamRefused does nothing.
func (NoObserver) StreamRefused(Stream, error) {}

// Request does nothing.
func (NoObserver) Request(Stream, RequestEvent) {}

// Response does nothing.
func (NoObserver) Response(Stream, ResponseEvent) {}

// Pushed does nothing.
func (NoObserver) Pushed(PushEvent) {}

// Converged does nothing.
func (NoObserver) Converged(Stream, string, time.Duration) {}

// Overdue does nothing.
func (NoObserver) Overdue(Stream, string, time.Duration) {}

// Failed does nothing.
func (NoObserver) Failed(error) {}

// Panicked does nothing.
func (NoObserver) Panicked(PanicEvent) {}
