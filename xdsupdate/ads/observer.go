// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Observer receives events of the server, for metrics. Its methods are called from many goroutines,
// with no lock held, and delay the work that they observe: they should be fast. Embed NoObserver to
// be safe from added methods.
type Observer interface { //nolint:interfacebloat // NoObserver has them all
	// StreamOpened is called when the proxy of a stream is identified; Node and View are set. It is
	// called once for a stream, before any other method. A stream that ends before that reaches
	// StreamRefused, or no method if the client or a stop of the server ended it.
	StreamOpened(s Stream)
	// StreamClosed is called when an opened stream has ended: once for each StreamOpened, after
	// that call has returned or panicked, and never otherwise. So the number of streams is the
	// number of calls of StreamOpened minus the number of calls of StreamClosed, and 0 when Run has
	// returned. Err is the reason of the end, or nil if the client ended the stream. Request,
	// Response and Converged may still be called for work in progress.
	StreamClosed(s Stream, err error)
	// StreamRefused is called when the server does not open a stream: because of Limits, because
	// Options.Proxy does not know the proxy, or because the first request is invalid. Node is the
	// ID in the request, "" if it has none; View is not set. Err is the error that the client gets.
	StreamRefused(s Stream, err error)
	// Request is called after a request was handled.
	Request(s Stream, r RequestEvent)
	// Response is called after a response was handed to gRPC.
	Response(s Stream, r ResponseEvent)
	// Pushed is called at the end of a push, when the responses are queued.
	Pushed(p PushEvent)
	// Converged is called when a client has accepted a response; after is the time since the newest
	// push in it was requested. It is not called for the first response to a subscription, which no
	// push caused.
	Converged(s Stream, typeURL string, after time.Duration)
	// Overdue is called when a client has not answered a response for too long
	// (Options.PhaseTimeout), and the resources that waited for the answer are sent.
	Overdue(s Stream, typeURL string, after time.Duration)
	// Failed is called when a resource, or an object's contribution to it, cannot be built or would
	// be rejected: the resource keeps its last state, or is sent without that part. Err names the
	// resource by type and name, a view that it is for (others may share it) and, if known, the
	// object. It is reported once for as long as it stays the same.
	Failed(err error)
	// Panicked is called after a panic, which affected only the part that panicked: see "Panics" in
	// the package comment.
	Panicked(p PanicEvent)
}

// Stream describes a stream to an Observer.
type Stream struct {
	// ID counts the streams of the server; it is 0 if the stream was rejected at once.
	ID    uint64
	Delta bool
	// Node is the ID of the node, and View its view: see StreamOpened and StreamRefused.
	Node string
	View View
}

// RequestEvent is a request. A request with a Nonce answers a response. Refused means that the
// answer is a NACK; Error is its text.
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
	// Resources and Removed count the resources in the response and the removed names.
	Resources, Removed int
	Bytes              int
}

// PushEvent is a push.
type PushEvent struct {
	Request *xdsupdate.PushRequest
	// Waited is the time that the oldest request in it was debounced for, Took the duration of the
	// push.
	Waited, Took time.Duration
}

// PanicEvent describes the panics of one part that are reported together: the panics of one push or
// request.
type PanicEvent struct {
	// In is the part, one of few texts: "group", "host", "observer", "provider", "proxy", "push",
	// "resource", "services", "stream"; package secrets adds "secret".
	In string
	// Name is the name of the host, provider or secret; otherwise "".
	Name string
	// Times is the number of panics, Err the first of them and Stack its stack.
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
