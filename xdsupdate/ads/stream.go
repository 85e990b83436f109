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
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/pace"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// service is the discovery service, whose methods are not methods of Server.
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

// stream runs the protocol of one stream, on three goroutines. gRPC's goroutine only waits for the
// end, so that the server or the client can end the stream at any time: when it returns, gRPC cancels
// the calls that the others wait for. The second goroutine receives requests, and sends the responses to them
// before it receives the next: the server does not read from a client that does not read. The third
// lives while a push has responses to send.
type stream struct {
	server *Server
	grpc   grpc.ServerStream
	conn   *connection
	// about is passed to observers.
	about atomic.Pointer[Stream]
	// opened means that an Observer knows the stream. The goroutine that receives reports the beginning and the
	// end, so that an Observer that counts streams sees both in that order.
	opened atomic.Bool
	bucket pace.Bucket
	// allowance is the allowance of the stream's connection. responses counts the responses that
	// the client has not answered, topics the names of its last subscription to a type: see
	// received.work.
	allowance *pace.Allowance
	responses atomic.Int64
	topics    int

	// sending is full while a goroutine sends. It is a channel because sending may take long: it
	// waits for a client that does not read, and for a turn.
	sending chan struct{}
	// turn ends the turn of the last large response, or is nil. sending guards it.
	turn func()

	once  sync.Once
	ended chan struct{} // closed by end
	err   error         // set before ended is closed
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
	st.conn.Delta, st.conn.Timeout, st.conn.RemovalDelay = delta, s.phaseTimeout, s.removalDelay
	st.about.Store(&Stream{Delta: delta})
	if err := s.streams.add(st, s.limits.Streams, s.limits.Unidentified); err != nil {
		s.refused(st, err)
		return err
	}
	go st.receive()
	select {
	case <-st.ended:
	case <-g.Context().Done(): // the goroutine that receives may be waiting for a turn
		st.end(status.FromContextError(g.Context().Err()).Err())
	}
	st.leave()
	s.streams.remove(st)
	return st.err
}

// leave ends the connection.
func (s *stream) leave() {
	s.endedBy(guard.Call(func() {
		s.conn.cache.locked(s.conn.close)
		s.conn.cache.detach()
	}))
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
	// A stream that has ended must not count as a late answer.
	s.sending <- struct{}{}
	s.endTurn()
	<-s.sending
	s.leave()
	s.server.closed(s)
}

func (s *stream) receiveAll() {
	if opened := s.await(streamWork); opened != nil {
		opened()
	}
	silent := time.AfterFunc(identifyWithin, func() { s.end(errSilent) })
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

// received is a request and its context.
type received struct {
	*wire.Request
	// answered is the response that the request answers, if any: see stream.begin.
	answered acks.Response
	// resumed are the resources that a delta client lists, or nil.
	resumed *resource.Snapshot
}

// answer handles a request and sends the queued responses.
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

// handle applies a request to the subscriptions, and queues the response.
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
	if s.observe(r, h); h.early {
		return nil
	}
	r.KeepNames()
	s.conn.cache.catchUp(h.sub, func() {
		h.sub.Open = !h.sub.Acks.Full()
		s.conn.draining = true // drain sends the responses that are queued from here on
	})
	return nil
}

// answers reports whether a request may be an answer to a response: as many requests are as there
// were responses.
func (s *stream) answers(r *received) bool {
	if r.Nonce == "" || s.responses.Load() == 0 {
		return false
	}
	s.responses.Dec()
	return true
}

// handling is the result of begin.
type handling struct {
	sub      *subscription // nil if the request does not count
	isAnswer bool          // the request answers received.answered
	// refused are the rejected resources that were not known before, or a response whose rejected resources are not
	// known yet.
	refused []Fault
	// early means that the client still has to answer later responses, so that the other fields of
	// the request do not count.
	early bool
	// changes means that the request may change the names of the subscription.
	changes bool
}

// begin records the answer in a request. It is called with the cache's mutex held.
func (s *stream) begin(r *received) (h handling, err error) {
	if s.conn.closed { // while the request waited for a response to be sent
		return h, nil
	}
	sub, err := s.conn.subscription(r.TypeURL, s.server.limits.Types)
	if err != nil {
		return h, err
	}
	if h.isAnswer = sub.Acks.Answer(r.Nonce, r.Refused, &r.answered); h.isAnswer {
		h.refused = sub.took(&r.answered, r)
		s.conn.Answered(&sub.Type, &r.answered, time.Now())
	}
	if !r.Delta && len(sub.Acks.Unanswered) > 0 {
		// The other fields of a request do not count until a SotW client has seen the last response
		// (xDS protocol, "ACK and NACK semantics summary").
		if h.isAnswer {
			h.sub, h.early = sub, true
			s.conn.cache.progressed()
		}
		return h, nil
	}
	if err := s.checkNames(sub, r); err != nil {
		return h, err
	}
	if h.sub, h.changes = sub, sub.changes(r); h.changes {
		sub.Open = false // the resources of its client must not change meanwhile
	}
	return h, nil
}

// wake makes sure that the queue is sent. It is called with the cache's mutex held, and does not
// block.
func (s *stream) wake() {
	if s.conn.draining {
		return
	}
	s.conn.draining = true
	s.server.streams.work.Go(func() {
		s.endedBy(guard.Call(func() {
			s.sending <- struct{}{}
			defer func() { <-s.sending }()
			s.drain()
		}))
	})
}

// drain sends the queued responses, unless the stream ends. The caller holds sending.
func (s *stream) drain() {
	for {
		s.conn.cache.mu.Lock()
		if len(s.conn.Queue) == 0 {
			more := s.conn.substitution() != nil
			s.conn.draining = more
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
