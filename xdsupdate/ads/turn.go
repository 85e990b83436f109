// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"runtime"
	"sync"
	"time"
)

// largeResponse is from how many bytes on a response waits for a turn: HTTP/2 lets
// no more be in flight by default, so that what is smaller is written in one go.
const largeResponse = 64 << 10

// longestTurn ends the turn of a client that does not answer: it is far away, slow
// or dead, and keeps no processor busy. A large response takes a few milliseconds
// of one, more if others compete for it.
const longestTurn = 50 * time.Millisecond

// turns bound how many large responses are on their way to clients at a time. A
// thousand proxies that connect at once are to have megabytes each. Sent all at
// once, they would share the processors, and as many goroutines would run before
// the one that has a changed endpoint for another client. With 200 connects on two
// cores such a change took 0.68 ms on average, 15 ms at the 99th percentile; with
// turns 0.24 and 5 ms, and the 200 are served earlier, because the buffers of few
// are used again (BenchmarkChangeDuringConnects, medians of four runs).
//
// Turns are taken in the order in which streams ask for them. Nil does not bound.
type turns chan struct{}

func newTurns(n int) turns {
	switch {
	case n < 0:
		return nil
	case n == 0:
		n = runtime.GOMAXPROCS(0)
	}
	return make(turns, n)
}

// take waits for a turn, or for the stream to end; then it returns nil. The turn
// lasts until end is called, but not for longer than longestTurn.
func (t turns) take(ended <-chan struct{}) (end func()) {
	if t == nil {
		return func() {}
	}
	select {
	case t <- struct{}{}:
	case <-ended:
		return nil
	}
	release := sync.OnceFunc(func() { <-t })
	timer := time.AfterFunc(longestTurn, release)
	return func() {
		timer.Stop()
		release()
	}
}

// takeTurn waits until a response of some bytes may be sent. It reports whether
// the stream lives. The caller holds sending.
func (s *stream) takeTurn(bytes int) bool {
	if bytes < largeResponse {
		return true
	}
	s.endTurn() // the client has not answered
	s.turn = s.server.turns.take(s.ended)
	return s.turn != nil
}

// endTurn ends the stream's turn, if it has one. The caller holds sending.
func (s *stream) endTurn() {
	if s.turn != nil {
		s.turn()
		s.turn = nil
	}
}
