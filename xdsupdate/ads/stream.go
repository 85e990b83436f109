// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"io"
	"sync"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/pace"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// service is the discovery service; it keeps its methods out of Server's.
type service struct{ server *Server }

// StreamAggregatedResources serves SotW.
func (a service) StreamAggregatedResources(
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	return a.server.serve(stream, false)
}

// DeltaAggregatedResources serves delta.
func (a service) DeltaAggregatedResources(
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer,
) error {
	return a.server.serve(stream, true)
}

// stream runs the protocol of one stream, on three goroutines. That of gRPC only
// waits for the end, so that the stream can be ended at any time: by its return
// gRPC cancels what the others wait for. One receives requests, and sends the
// answers to them before it receives the next: a client that reads nothing is not
// read either. The third lives while a push has something to send.
type stream struct {
	server *Server
	grpc   grpc.ServerStream
	conn   *connection
	// about is what an observer receives.
	about  atomic.Pointer[Stream]
	life   streamLife
	bucket pace.Bucket
	// allowance is that of the stream's connection. responses is how many the client
	// has not answered, topics how many names it was last subscribed to of a type: see
	// received.work.
	allowance *pace.Allowance
	// owner is the client that the stream counts for, which is known when it has entered: its
	// identity, or else the allowance. It is guarded by the cache's mutex.
	owner     any
	responses atomic.Int64
	topics    int

	// sending is full while a goroutine sends. It is a channel because that may last:
	// a send waits for a client that does not read, and for a turn.
	sending chan struct{}
	// turn ends the turn of the last large response; nil: there is none. It is guarded
	// by sending.
	turn func()
	// draining: a goroutine sends, or is about to, and will look at the queue again.
	// It is guarded by the cache's mutex.
	draining bool

	once  sync.Once
	ended chan struct{} // closed by end
	err   error         // before ended is closed
}

// serve runs a stream until it ends or the server stops.
func (s *Server) serve(g grpc.ServerStream, delta bool) error {
	s.warnIdle()
	allowance, done := s.allowances.Open(g.Context())
	defer done()
	st := &stream{
		server: s, grpc: g, allowance: allowance, bucket: pace.NewBucket(s.limits.RequestsPerSecond, float64(s.limits.RequestBurst)),
		sending: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	st.conn = &connection{cache: s.cache, stream: st}
	st.conn.Delta, st.conn.Timeout, st.conn.RemovalDelay = delta, s.cache.phaseTimeout, s.cache.removalDelay
	st.about.Store(&Stream{Delta: delta})
	if err := s.streams.add(st, s.limits.Streams, s.limits.Unidentified); err != nil {
		s.refused(st, err)
		return err
	}
	go st.receive()
	<-st.ended
	st.endedBy(guard.Call(func() {
		s.cache.locked(st.conn.close)
		s.cache.detach()
	}))
	s.closed(st)
	s.streams.remove(st)
	return st.err
}

// end ends the stream; the first call counts.
func (s *stream) end(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.ended)
	})
}

// receive handles requests until the stream ends.
func (s *stream) receive() {
	defer s.server.streams.work.Done()
	s.endedBy(guard.Call(s.receiveAll))
	// A client that has left is not one that is late.
	s.sending <- struct{}{}
	s.endTurn()
	<-s.sending
}

func (s *stream) receiveAll() {
	if opened := s.await(streamWork); opened != nil {
		opened()
	}
	silent := time.AfterFunc(identifyWithin, func() { s.end(errSilent()) })
	defer silent.Stop()
	r := &received{Request: wire.NewRequest(s.conn.Delta, s.server.limits.RequestBytes, s.server.limits.NodeBytes)}
	for {
		err := s.grpc.RecvMsg(r.Request)
		silent.Stop()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			s.end(err)
			return
		}
		if err := s.answer(r); err != nil {
			s.server.refused(s, err)
			s.end(err)
			return
		}
	}
}

// received is a request, with what it is about.
type received struct {
	*wire.Request
	// answered is the response that it is an answer to, if it is one: see stream.begin.
	answered acks.Response
	// resumed is what a delta client says that it has; nil: nothing.
	resumed *resource.Snapshot
}

// answer handles a request and sends what is queued then.
func (s *stream) answer(r *received) error {
	defer s.server.reportFailures()
	s.sending <- struct{}{}
	defer func() { <-s.sending }()
	s.endTurn()
	err := s.handle(r)
	r.answered, r.resumed = acks.Response{}, nil // the request is kept until the next one
	if err != nil {
		return err
	}
	s.drain()
	return nil
}

// handle makes the subscriptions what a request says, and queues the answer.
func (s *stream) handle(r *received) error {
	if err := s.check(r); err != nil {
		return err
	}
	if s.conn.node == nil {
		if err := s.enter(r); err != nil {
			return err
		}
	}
	done := s.await(r.work(s.answers(r), s.topics))
	if done == nil {
		return nil
	}
	defer done()
	var h handling
	var err error
	s.conn.cache.locked(func() { h, err = s.begin(r) })
	if err != nil || h.sub == nil {
		return err
	}
	if h.changes {
		if err := s.checkAllNames(r); err != nil {
			return err
		}
		h.sub.resubscribe(r)
	}
	if !h.early {
		r.KeepNames()
	}
	s.observe(r, h)
	if !h.done {
		s.reply(h.sub)
	}
	return nil
}

// answers reports whether a request may be the answer to a response: as many are as
// there were responses.
func (s *stream) answers(r *received) bool {
	if r.Nonce == "" || s.responses.Load() == 0 {
		return false
	}
	s.responses.Dec()
	return true
}

// handling is what a request is about.
type handling struct {
	sub      *subscription // nil: nothing of it counts
	isAnswer bool          // to received.answered
	// refused are refusals that were not known before.
	refused []Refusal
	// early: there are later responses for the client to answer, and nothing else of the
	// request counts.
	early bool
	// changes: it may change what the subscription is. done: there is nothing left to do.
	changes, done bool
}

// begin records what a request answers. It is called with the cache's mutex held.
func (s *stream) begin(r *received) (h handling, err error) {
	if s.conn.closed { // while the request waited for a response to be sent
		return h, nil
	}
	sub, err := s.conn.subscription(r.TypeURL)
	if err != nil {
		return h, err
	}
	if h.isAnswer = sub.Acks.Answer(r.Nonce, r.Refused, &r.answered); h.isAnswer {
		h.refused = sub.took(&r.answered, r)
		s.conn.Answered(&sub.Type, &r.answered, time.Now())
	}
	if !r.Delta && len(sub.Acks.Unanswered) > 0 {
		// Of a SotW client that has not seen the last response yet nothing else counts (xDS
		// protocol, "ACK and NACK semantics summary").
		if h.isAnswer {
			h.sub, h.early, h.done = sub, true, true
			s.conn.cache.progressed()
		}
		return h, nil
	}
	if err := s.checkNames(sub, r); err != nil {
		return h, err
	}
	h.sub, h.changes = sub, sub.changes(r)
	switch {
	case h.changes:
		sub.Open = false // what its client has is not to change meanwhile
	case sub.isQuick():
		s.flush(sub, nil)
		h.done = true
	}
	return h, nil
}

// reply queues what answers a request.
func (s *stream) reply(sub *subscription) {
	c := s.conn.cache
	c.refresh(sub)
	a := c.lookAhead(sub)
	c.locked(func() { s.flush(sub, a) })
}

// flush queues what is to be sent, of which the difference of a subscription may be
// known ahead. It is called with the cache's mutex held.
func (s *stream) flush(sub *subscription, a *ahead) {
	sub.Open = !sub.Acks.Full()
	s.draining = true // what is queued from here on is sent by drain
	s.conn.cache.flushAhead(sub, a)
	s.conn.cache.progressed()
}

// wake sees to it that the queue is sent. It is called with the cache's mutex
// held, and not blocked by anything.
func (s *stream) wake() {
	if s.draining {
		return
	}
	s.draining = true
	s.server.streams.work.Go(func() {
		s.endedBy(guard.Call(func() {
			s.sending <- struct{}{}
			defer func() { <-s.sending }()
			s.drain()
		}))
	})
}

// drain sends what is queued, unless the stream ends. The caller holds sending.
func (s *stream) drain() {
	for {
		s.conn.cache.mu.Lock()
		if len(s.conn.Queue) == 0 {
			more := s.conn.substitutes()
			s.draining = more
			s.conn.cache.mu.Unlock()
			if more && s.substitute() {
				continue
			}
			return
		}
		next := s.conn.Queue[0]
		s.conn.Queue[0] = sequence.Response{}
		if s.conn.Queue = s.conn.Queue[1:]; len(s.conn.Queue) == 0 {
			s.conn.Queue = nil
		}
		s.conn.cache.mu.Unlock()
		if !s.takeTurn(len(next.Content.Encode())) {
			return
		}
		m := next.Content.Message(next.Version, next.Nonce)
		s.responses.Inc()
		if err := s.grpc.SendMsg(m); err != nil {
			s.end(err)
			return
		}
		s.server.observing(func(o Observer) {
			o.Response(*s.about.Load(), ResponseEvent{
				TypeURL: next.Content.TypeURL, Version: next.Version, Nonce: next.Nonce,
				Resources: next.Content.Count(), Removed: len(next.Content.Removed), Bytes: proto.Size(m),
			})
		})
	}
}
