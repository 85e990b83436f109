// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Limits bound the requests of clients. Zero means the default, a negative number no limit. A
// stream that exceeds a limit is ended with the status ResourceExhausted and a text that names the
// limit; the client keeps its resources. Observers get a *LimitError.
//
// Clients take turns even without limits: see "Fairness" in the package comment.
type Limits struct {
	// Streams is the number of concurrent streams of identified clients. If it is exceeded, the
	// newest stream of the client with the most streams is ended for the stream of a client with
	// fewer. A client is an identity, registry.Proxy.Identity, or a connection if it has none.
	// Default 50,000: with gRPC's share a stream takes about 80 kB.
	Streams int
	// Unidentified is the number of concurrent streams of clients that are not identified yet; it
	// is never more than Streams. If it is exceeded, the oldest stream of the connection with the
	// most streams is ended for the new one. Streams without a request within 10 seconds are ended.
	// Default 2,000.
	Unidentified int
	// StreamsPerNode is the number of concurrent streams with one node ID. While a client
	// reconnects, its old stream may still be there: leave room. Default: no limit, because a node
	// chooses its ID.
	StreamsPerNode int
	// Names is the number of resources that one stream may subscribe to by name, of all types
	// together. Default 100,000.
	Names int
	// Types is the number of types that one stream may subscribe to. Default 10, more than xDS has;
	// protocols on top of it have more.
	Types int
	// AllNames is the number of different pairs of type and name that all streams together may
	// subscribe to. A resource that exists counts once for all clients; names that clients invent
	// are bounded. The names of a request count as new when it is checked. Beyond the limit a
	// client may still subscribe to names that a wildcard subscription of the type covers, because
	// clients cannot invent these, and to other names within its share: the limit divided by the
	// number of clients, as Streams counts them. Default 10,000,000.
	AllNames int
	// RequestBytes is the size of the largest request. Default 4 MiB, which is also gRPC's own
	// limit, unless the gRPC server has another.
	RequestBytes int
	// NodeBytes is the size of the largest node, which is kept as long as the stream. Default 256
	// KiB.
	NodeBytes int
	// RequestsPerSecond is the number of requests that a stream may send per second in the long
	// run, RequestBurst the number that it may send at once; at least one. An ACK is a request: a
	// client sends one for each response. Default: no limit.
	RequestsPerSecond float64
	RequestBurst      int
}

// Limit is one of Limits, by the name of its field.
type Limit string

// The limits that can end a stream. RequestBurst is a part of LimitRequestsPerSecond.
const (
	LimitStreams           Limit = "Streams"
	LimitUnidentified      Limit = "Unidentified"
	LimitStreamsPerNode    Limit = "StreamsPerNode"
	LimitNames             Limit = "Names"
	LimitTypes             Limit = "Types"
	LimitAllNames          Limit = "AllNames"
	LimitRequestBytes      Limit = "RequestBytes"
	LimitNodeBytes         Limit = "NodeBytes"
	LimitRequestsPerSecond Limit = "RequestsPerSecond"
)

// LimitError is the reason why a stream was rejected, or ended, that exceeds one of Limits. Its
// gRPC status is ResourceExhausted.
type LimitError struct {
	Limit Limit
	text  string
}

func exceeds(limit Limit, format string, args ...any) error {
	return &LimitError{limit, fmt.Sprintf(format, args...)}
}

// Error returns the text that the client gets.
func (e *LimitError) Error() string { return e.GRPCStatus().Err().Error() }

// GRPCStatus returns the status that the client gets; package status calls it.
func (e *LimitError) GRPCStatus() *status.Status { return status.New(codes.ResourceExhausted, e.text) }

// withDefaults returns the limits with defaults, and with zero for no limit.
func (l Limits) withDefaults() Limits {
	for limit, otherwise := range map[*int]int{
		&l.Streams: 50_000, &l.Unidentified: 2000, &l.NodeBytes: 256 << 10, &l.StreamsPerNode: 0, &l.Names: 100_000, &l.Types: 10, &l.AllNames: 10_000_000, &l.RequestBytes: 4 << 20,
	} {
		*limit = max(0, cmp.Or(*limit, otherwise))
	}
	return l
}

// check rejects requests that no client may send.
func (s *stream) check(r *received) error {
	limits := s.server.limits
	switch {
	case limits.RequestBytes > 0 && r.Bytes > limits.RequestBytes:
		return exceeds(LimitRequestBytes, "request of %d bytes, more than %d", r.Bytes, limits.RequestBytes)
	case limits.NodeBytes > 0 && r.NodeBytes > limits.NodeBytes:
		return exceeds(LimitNodeBytes, "node of %d bytes, more than %d", r.NodeBytes, limits.NodeBytes)
	case r.TypeURL == "":
		return status.Error(codes.InvalidArgument, "type URL is required for ADS")
	case !s.bucket.Take(time.Now(), 1):
		return exceeds(LimitRequestsPerSecond, "more than %g requests a second", limits.RequestsPerSecond)
	}
	if id := s.conn.node.GetId(); r.Node != nil && s.conn.node != nil && r.Node.GetId() != id { // its view was chosen for that ID
		return status.Errorf(codes.InvalidArgument, "node id changed from %q to %q", id, r.Node.GetId())
	}
	return nil
}

// checkNames rejects a request that subscribes to too many names. It is called with the cache's
// mutex held.
func (s *stream) checkNames(sub *subscription, r *received) error {
	limit := s.server.limits.Names
	if r.Same || limit == 0 {
		return nil
	}
	n := r.Names.Count + r.Subscribe.Count
	for other := range s.conn.all() {
		if other != sub || r.Delta {
			n += len(other.topics())
		}
	}
	if n > limit {
		return exceeds(LimitNames, "more than %d resources subscribed by name", limit)
	}
	return nil
}

// checkAllNames rejects a request that brings the names of all clients over the limit. It takes the
// lock.
func (s *stream) checkAllNames(r *received) error {
	c, limit, come := s.conn.cache, s.server.limits.AllNames, r.Names.Count+r.Subscribe.Count
	if limit == 0 || come == 0 || r.Same {
		return nil
	}
	over, share := false, 0
	var from resolver
	c.locked(func() {
		if over = !s.conn.closed && c.index.Len()+come > limit; over {
			from, share = c.resolver(s.conn.view), c.shareOf(s.owner(), limit)
		}
	})
	if !over || come <= share {
		return nil
	}
	for _, name := range slices.Concat(r.Names.Decoded(), r.Subscribe.Decoded()) {
		if from.covered(r.TypeURL, name) == nil {
			return exceeds(LimitAllNames, "more than %d resources subscribed by name by all clients", limit)
		}
	}
	return nil
}

// shareOf returns the number of further names that a client may subscribe to when all clients
// together have reached the limit. It is called with the cache's mutex held.
func (c *cache) shareOf(owner any, limit int) int {
	owners, selections := make(map[any]struct{}), make(map[*selection]struct{})
	for conn := range c.conns {
		of := conn.stream.owner()
		owners[of] = struct{}{}
		if of != owner {
			continue
		}
		for sub := range conn.all() {
			if sub.selection != nil {
				selections[sub.selection] = struct{}{}
			}
		}
	}
	left := limit / max(1, len(owners))
	for sel := range selections {
		left -= len(sel.topics)
	}
	return left
}
