// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"runtime"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/pace"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// Requests are work, and clients choose how many they send. So each connection has an allowance of
// work that is done at once; only large pieces of it take turns, on half of the processors. Work
// beyond the allowance takes turns of its own: it is done for few clients at a time, in the order
// of arrival, and after each turn its processor is left to others for some time. The server does
// not read from a client that waits, so that its data fills its window of HTTP/2 and costs nothing.
// Changes and the responses to them do not wait for this, nor do ACKs and NACKs.

// Work is counted in units of about a microsecond of a processor.
const (
	// streamWork is the cost of opening a stream, trialWork the cost of building a trial for a
	// client that rejects a resource, with one more for each object, and requestWork the cost of a
	// request that is no answer. For each name in it, and for each workBytes bytes, there is one
	// more, and one for each workTopics names that are subscribed already.
	streamWork  = 1_000
	trialWork   = 200
	requestWork = 50
	workBytes   = 64
	workTopics  = 20
	// largeWork is the amount above which allowed work takes turns, because the holder of the lock
	// must not wait for a processor behind many others.
	largeWork = 1_000
	// restFor is the factor between a turn and the rest after it. A turn counts as at most mostTime
	// times its work, because it may have waited for locks that thousands of connecting clients hold.
	restFor  = 3
	mostTime = 10
)

// work returns the cost of a request. answers means that a response to the client waits for its
// answer.
func (r *received) work(answers bool, topics int) int {
	names := r.Names.Count + r.Subscribe.Count + r.Unsubscribe.Count + r.InitialVersions.Count
	switch {
	case answers && names == 0:
		return 0
	case r.Same:
		return requestWork // the names are compared as a whole
	case names == 0:
		return requestWork + r.Bytes/workBytes
	default:
		return requestWork + r.Bytes/workBytes + names + topics/workTopics
	}
}

// newWorkTurns returns turns for work on half of the processors.
func newWorkTurns() *pace.Turns { return pace.NewTurns(max(1, runtime.GOMAXPROCS(0)/2)) }

// await waits until some work may be done. It returns nil if the stream has ended.
func (s *stream) await(work int) (done func()) {
	allowed := work == 0 || s.server.allowances.Allows(s.allowance, work)
	turns := s.server.excess
	switch {
	case allowed && work < largeWork:
		return func() {}
	case allowed:
		turns = s.server.large
	}
	if !turns.Wait(s.ended) {
		return nil
	}
	begun := time.Now()
	return func() {
		if allowed {
			turns.End(0)
			return
		}
		estimate := time.Duration(work) * time.Microsecond
		took := min(max(time.Since(begun), estimate), mostTime*estimate)
		time.AfterFunc(restFor*took, func() { turns.End(0) })
	}
}

// takeTurn waits until a response of some bytes may be sent, for a turn if it is large. It reports
// whether the stream lives. The caller holds sending.
func (s *stream) takeTurn(bytes int) bool {
	if bytes < wire.LargeResponse {
		return true
	}
	s.endTurn() // the client has not answered
	s.turn = s.server.turns.Take(s.ended)
	return s.turn != nil
}

// endTurn ends the stream's turn, if it has one. The caller holds sending.
func (s *stream) endTurn() {
	if s.turn != nil {
		s.turn()
		s.turn = nil
	}
}
