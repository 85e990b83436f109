// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/pace"
)

// identifyWithin is how long a client may take for its first request.
const identifyWithin = 10 * time.Second

func errSilent() error {
	return status.Errorf(codes.DeadlineExceeded, "no request for %v", identifyWithin)
}

// liveStreams are the streams to be ended when the server stops.
type liveStreams struct {
	mu      sync.Mutex
	stopped bool
	live    map[*stream]struct{}
	next    uint64
	// unidentified are those of clients of which it is not known who they are, by connection.
	unidentified map[*pace.Allowance]map[*stream]struct{}
	unknown      int // all of them
	// work counts streams and their goroutines.
	work sync.WaitGroup
}

// add counts a stream and its receiver, unless the server has stopped or there are
// too many, and none makes place.
func (l *liveStreams) add(s *stream, limit, unidentified int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped:
		return errStopping()
	case limit > 0 && len(l.live) >= limit && !l.makePlaceLocked():
		return exceeds(LimitStreams, "more than %d streams", limit)
	case unidentified > 0 && l.unknown >= unidentified && !l.makePlaceLocked():
		return exceeds(LimitUnidentified, "more than %d streams of clients that have not said who they are", unidentified)
	}
	if l.live == nil {
		l.live = make(map[*stream]struct{})
	}
	l.live[s] = struct{}{}
	l.next++
	if l.unidentified == nil {
		l.unidentified = make(map[*pace.Allowance]map[*stream]struct{})
	}
	if l.unidentified[s.allowance] == nil {
		l.unidentified[s.allowance] = make(map[*stream]struct{})
	}
	l.unidentified[s.allowance][s] = struct{}{}
	l.unknown++
	s.about.Store(&Stream{ID: l.next, Delta: s.conn.delta})
	l.work.Add(2)
	return nil
}

// makePlaceLocked ends a stream of which it is not known who the client is: the oldest of the connection that has the
// most of them. It reports whether there is one.
func (l *liveStreams) makePlaceLocked() bool {
	most := 0
	var oldest *stream
	for _, of := range l.unidentified {
		if len(of) < most {
			continue
		}
		if len(of) > most {
			most, oldest = len(of), nil
		}
		for o := range of {
			if oldest == nil || o.about.Load().ID < oldest.about.Load().ID {
				oldest = o
			}
		}
	}
	if oldest == nil {
		return false
	}
	l.identifiedLocked(oldest)
	delete(l.live, oldest)
	oldest.end(exceeds(LimitUnidentified, "streams of clients that have said who they are need the place"))
	return true
}

// identified notes that it is known who the client of a stream is.
func (l *liveStreams) identified(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.identifiedLocked(s)
}

func (l *liveStreams) identifiedLocked(s *stream) {
	of := l.unidentified[s.allowance]
	if _, there := of[s]; !there {
		return
	}
	l.unknown--
	if delete(of, s); len(of) == 0 {
		delete(l.unidentified, s.allowance)
	}
}

func (l *liveStreams) remove(s *stream) {
	l.mu.Lock()
	delete(l.live, s)
	l.identifiedLocked(s)
	l.mu.Unlock()
	l.work.Done()
}

// stop ends all streams and returns when they have ended.
func (l *liveStreams) stop() {
	l.mu.Lock()
	l.stopped = true
	for s := range l.live {
		s.end(errStopping())
	}
	l.mu.Unlock()
	l.work.Wait()
}
