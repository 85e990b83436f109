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

// Limits bound what clients can ask for. Zero means the default, a negative number no
// limit. A stream that exceeds one is ended with the status ResourceExhausted and a text
// that names the limit; what it was sent before stays with the client. Observers get a *LimitError.
//
// Without any of them clients still take turns: see the package comment.
type Limits struct {
	// Streams is how many streams there may be at a time of clients that have said who they are.
	// Where they are more, the newest stream of the client with the most of them makes place for
	// one of a client that has fewer. A client is an identity, registry.Proxy.Identity; without
	// one it is a connection. Default 50,000: with what gRPC needs a stream takes about 80 kB.
	Streams int
	// Unidentified is how many streams there may be at a time of clients that have not said who
	// they are, or of which it is not known yet; they are never more than Streams. Where they are
	// more, the oldest of the connection with the most of them makes place for a new one. Those
	// that say nothing for 10 seconds are ended. Default 2,000.
	Unidentified int
	// StreamsPerNode is how many streams with one node ID there may be at a time.
	// While a client reconnects its old stream may still be there: leave room. Default:
	// no limit, as a node says itself who it is.
	StreamsPerNode int
	// Names is how many resources one stream may be subscribed to by name, of all
	// types together. Default 100,000.
	Names int
	// Types is how many types one stream may be subscribed to. Default 10, more than the
	// types of xDS that there are; protocols on top of it have more.
	Types int
	// AllNames is how many different names, of each type, all streams together may be
	// subscribed to: those of resources that exist count once for however many clients,
	// and those that clients invent have a bound. Those of a request count as new ones
	// when it is checked. Where they are more, a client may still subscribe to what a wildcard
	// subscription of its type covers, because nobody can invent that, and to other names within
	// its share: the limit divided by the number of clients, as Streams counts them. Default 10,000,000.
	AllNames int
	// RequestBytes is the largest request. Default 4 MiB, which is gRPC's own limit too,
	// unless the server has another.
	RequestBytes int
	// NodeBytes is the largest node: it is kept as long as the stream. Default 256 KiB.
	NodeBytes int
	// RequestsPerSecond is how many requests a second a stream may send in the long
	// run, RequestBurst how many at once; at least one. An ACK is a request: a
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

// LimitError is why a stream was refused, or ended, that exceeds one of Limits. Its gRPC status is
// ResourceExhausted.
type LimitError struct {
	Limit Limit
	text  string
}

func exceeds(limit Limit, format string, args ...any) error {
	return &LimitError{limit, fmt.Sprintf(format, args...)}
}

// Error returns the text that the client gets.
func (e *LimitError) Error() string { return e.GRPCStatus().Err().Error() }

// GRPCStatus returns the status that the client gets: package status takes it from here.
func (e *LimitError) GRPCStatus() *status.Status { return status.New(codes.ResourceExhausted, e.text) }

// withDefaults returns limits of which zero means none.
func (l Limits) withDefaults() Limits {
	for limit, otherwise := range map[*int]int{
		&l.Streams: 50_000, &l.Unidentified: 2000, &l.NodeBytes: 256 << 10, &l.StreamsPerNode: 0, &l.Names: 100_000, &l.Types: 10, &l.AllNames: 10_000_000, &l.RequestBytes: 4 << 20,
	} {
		*limit = max(0, cmp.Or(*limit, otherwise))
	}
	return l
}

// check refuses what no client may send.
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
	return s.checkNode(r.Node)
}

// checkNames refuses a request that subscribes to too much. It is called with the
// cache's mutex held.
func (s *stream) checkNames(sub *subscription, r *received) error {
	limit := s.server.limits.Names
	if r.Same {
		return nil
	}
	if limit == 0 {
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

// checkAllNames refuses a request that subscribes to names of which all clients have too many. It takes the lock.
func (s *stream) checkAllNames(r *received) error {
	c, limit, come := s.conn.cache, s.server.limits.AllNames, r.Names.Count+r.Subscribe.Count
	if limit == 0 || come == 0 || r.Same {
		return nil
	}
	over, share := false, 0
	var from resolver
	c.locked(func() {
		if over = !s.conn.closed && c.index.Len()+come > limit; over {
			from, share = c.resolver(s.conn.view), c.shareOf(s.owner, limit)
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

// shareOf returns to how many names more a client may subscribe although all clients together have as many as
// the limit. It is
// called with the cache's mutex held.
func (c *cache) shareOf(owner any, limit int) int {
	owners, of := make(map[any]struct{}), make(map[*selection]struct{})
	for conn := range c.conns {
		owners[conn.stream.owner] = struct{}{}
		if conn.stream.owner != owner {
			continue
		}
		for sub := range conn.all() {
			if sub.selection != nil {
				of[sub.selection] = struct{}{}
			}
		}
	}
	left := limit / max(1, len(owners))
	for sel := range of {
		left -= len(sel.topics)
	}
	return left
}
