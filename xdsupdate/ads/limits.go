// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Limits bound what clients can ask for. Zero means no limit. A stream that
// exceeds one is ended with the status ResourceExhausted and a text that names
// the limit; what it was sent before stays with the client.
type Limits struct {
	// Streams is how many streams there may be at a time.
	Streams int
	// StreamsPerNode is how many streams with one node ID there may be at a time.
	// While a client reconnects its old stream may still be there: leave room.
	StreamsPerNode int
	// Names is how many resources one stream may be subscribed to by name, of all
	// types together.
	Names int
	// RequestBytes is the largest request. gRPC has a limit of its own, 4 MiB by
	// default.
	RequestBytes int
	// RequestsPerSecond is how many requests a second a stream may send in the long
	// run, RequestBurst how many at once; at least one. An ACK is a request: a
	// client sends one for each response.
	RequestsPerSecond float64
	RequestBurst      int
}

// check refuses what no client may send.
func (s *stream) check(r *request) error {
	limits := s.server.limits
	switch {
	case r.typeURL == "":
		return status.Error(codes.InvalidArgument, "type URL is required for ADS")
	case limits.RequestBytes > 0 && r.bytes > limits.RequestBytes:
		return status.Errorf(codes.ResourceExhausted, "request of %d bytes, more than %d", r.bytes, limits.RequestBytes)
	case !s.bucket.take(time.Now()):
		return status.Errorf(codes.ResourceExhausted, "more than %g requests a second", limits.RequestsPerSecond)
	}
	return s.checkNode(r.node)
}

// checkNames refuses a request that subscribes to too much. It is called with the
// cache's mutex held.
func (s *stream) checkNames(sub *subscription, r *request) error {
	limit := s.server.limits.Names
	if limit == 0 || r.same {
		return nil
	}
	n := len(r.names) + len(r.subscribe)
	for _, other := range s.conn.order {
		if other != sub || r.delta {
			n += len(other.topics())
		}
	}
	if n > limit {
		return status.Errorf(codes.ResourceExhausted, "more than %d resources subscribed by name", limit)
	}
	return nil
}

// bucket is a token bucket: what Limits says of requests.
type bucket struct {
	perSecond, burst float64
	tokens           float64
	last             time.Time
}

func newBucket(l Limits) bucket {
	burst := max(1, float64(l.RequestBurst))
	return bucket{perSecond: l.RequestsPerSecond, burst: burst, tokens: burst}
}

// take reports whether a request may pass now.
func (b *bucket) take(now time.Time) bool {
	if b.perSecond <= 0 {
		return true
	}
	if !b.last.IsZero() {
		b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.perSecond)
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
