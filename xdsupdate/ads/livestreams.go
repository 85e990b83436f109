// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// identifyWithin is the time within which a client has to send its first request.
const identifyWithin = 10 * time.Second

var errSilent = status.Errorf(codes.DeadlineExceeded, "no request for %v", identifyWithin)

// liveStreams are the streams that are ended when the server stops.
type liveStreams struct {
	mu      sync.Mutex
	stopped bool
	live    map[*stream]any // with the owner, or nil before it is known
	next    uint64
	// unidentified are the streams of clients that are not identified yet, by connection; clients
	// are the others, by owner, and nodes the same by node ID, if their number is bounded.
	unidentified, clients, nodes streamGroups
	// work counts streams and their goroutines.
	work sync.WaitGroup
}

// streamGroups are streams by their owner.
type streamGroups struct {
	of    map[any]map[*stream]struct{}
	count int // all of them
}

func (g *streamGroups) add(owner any, s *stream) {
	if g.of == nil {
		g.of = make(map[any]map[*stream]struct{})
	}
	if g.of[owner] == nil {
		g.of[owner] = make(map[*stream]struct{})
	}
	g.of[owner][s] = struct{}{}
	g.count++
}

func (g *streamGroups) remove(owner any, s *stream) {
	of := g.of[owner]
	if _, there := of[s]; !there {
		return
	}
	g.count--
	if delete(of, s); len(of) == 0 {
		delete(g.of, owner)
	}
}

// largest returns the owner with the most streams, any one of several, or nil if there are no
// streams.
func (g *streamGroups) largest() (owner any) {
	for o, of := range g.of {
		if len(of) > len(g.of[owner]) {
			owner = o
		}
	}
	return owner
}

// sorted returns the streams of an owner, the oldest first.
func (g *streamGroups) sorted(owner any) []*stream {
	return slices.SortedFunc(maps.Keys(g.of[owner]), func(a, b *stream) int { return cmp.Compare(a.about.Load().ID, b.about.Load().ID) })
}

// add counts a stream and its receiver. If the server has stopped it returns an error. If too many
// streams are not identified yet, it ends one of them.
func (l *liveStreams) add(s *stream, limit, unidentified int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return errStopping
	}
	if limit > 0 && (unidentified == 0 || limit < unidentified) {
		unidentified = limit
	}
	if unidentified > 0 && l.unidentified.count >= unidentified {
		oldest := l.unidentified.sorted(l.unidentified.largest())[0]
		l.evictLocked(oldest, exceeds(LimitUnidentified, "more than %d streams of clients that have not said who they are", unidentified))
	}
	if l.live == nil {
		l.live = make(map[*stream]any)
	}
	l.live[s] = nil
	l.next++
	s.about.Store(&Stream{ID: l.next, Delta: s.conn.Delta})
	l.unidentified.add(s.allowance, s)
	l.work.Add(2)
	return nil
}

// identified records the owner of a stream, unless its node has too many streams. If there are too many
// of all, it ends the newest stream of the owner with the most streams, unless that owner would have no
// more left than this one.
func (l *liveStreams) identified(s *stream, owner any, limits Limits) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, live := l.live[s]; !live {
		return nil // it has been ended
	}
	node := s.about.Load().Node
	if limit := limits.StreamsPerNode; limit > 0 {
		if len(l.nodes.of[node]) >= limit {
			return exceeds(LimitStreamsPerNode, "more than %d streams of node %q", limit, node)
		}
		l.nodes.add(node, s)
	}
	if limit := limits.Streams; limit > 0 && l.clients.count >= limit {
		largest := l.clients.largest()
		if len(l.clients.of[largest])-1 <= len(l.clients.of[owner]) {
			return exceeds(LimitStreams, "more than %d streams", limit)
		}
		newest := len(l.clients.of[largest]) - 1
		l.evictLocked(l.clients.sorted(largest)[newest], exceeds(LimitStreams, "more than %d streams, of which this client has the most", limit))
	}
	l.unidentified.remove(s.allowance, s)
	l.live[s] = owner
	l.clients.add(owner, s)
	return nil
}

// evictLocked ends a stream, which does not count from now on.
func (l *liveStreams) evictLocked(s *stream, why error) {
	l.forgetLocked(s)
	s.end(why)
}

func (l *liveStreams) forgetLocked(s *stream) {
	l.unidentified.remove(s.allowance, s)
	l.clients.remove(l.live[s], s)
	l.nodes.remove(s.about.Load().Node, s)
	delete(l.live, s)
}

func (l *liveStreams) remove(s *stream) {
	l.mu.Lock()
	l.forgetLocked(s)
	l.mu.Unlock()
	l.work.Done()
}

// stop ends all streams and returns when they have ended.
func (l *liveStreams) stop() {
	l.mu.Lock()
	l.stopped = true
	for s := range l.live {
		s.end(errStopping)
	}
	l.mu.Unlock()
	l.work.Wait()
}
