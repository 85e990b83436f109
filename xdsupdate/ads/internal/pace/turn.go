// SPDX-License-Identifier: Apache-2.0

// Package pace bounds the concurrent work, and the work of each connection: Turns, token buckets
// (Bucket), and the Allowances of connections.
package pace

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"
)

// longestTurn ends the turn of a client that does not answer: it is far away, slow or dead, and
// keeps no processor busy. A large response takes a few milliseconds of one, more if others compete
// for it.
const longestTurn = 50 * time.Millisecond

// mostTurns bounds the growth of the number of turns, as a factor.
const mostTurns = 32

// Turns bound the number of large responses in flight. A thousand proxies that connect at the same
// time get megabytes each. Sent all at once, the responses would share the processors, and as many
// goroutines would run before the one that has a changed endpoint for another client
// (BenchmarkChangeDuringConnects). In turns all clients are served earlier, because the buffers of
// few are used again.
//
// Turns are taken in the order of the requests. Clients that do not answer in time
// show that processors are not the bottleneck: then there is one turn more, up to mostTurns times
// as many, so that a thousand distant clients are served in about twenty times longestTurn, and not
// one after the other. Thousands of malicious clients that are late on purpose take no more than
// that. With each answer in time there is one turn less again, and the initial number when no turn
// is taken.
type Turns struct {
	least int // the initial number; negative if it is not bounded

	mu      sync.Mutex
	limit   int
	taken   int
	waiting []chan struct{} // each is closed when its turn has come
}

// NewTurns returns n turns at a time; 0 means GOMAXPROCS, a negative number means no bound.
func NewTurns(n int) *Turns {
	n = cmp.Or(n, runtime.GOMAXPROCS(0))
	return &Turns{least: n, limit: n}
}

// Take waits for a turn, or for the stream to end; then it returns nil. The turn lasts until end is
// called, but not for longer than longestTurn.
func (t *Turns) Take(ended <-chan struct{}) (end func()) {
	if t.least < 0 {
		return func() {}
	}
	if !t.Wait(ended) {
		return nil
	}
	var once sync.Once
	timer := time.AfterFunc(longestTurn, func() { once.Do(func() { t.End(+1) }) })
	return func() {
		timer.Stop()
		once.Do(func() { t.End(-1) })
	}
}

// Wait waits for a turn, or for the stream to end; then it reports false. The caller calls End.
func (t *Turns) Wait(ended <-chan struct{}) bool {
	mine := make(chan struct{})
	t.mu.Lock()
	t.waiting = append(t.waiting, mine)
	t.next()
	t.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-ended:
		t.cancel(mine)
		return false
	}
}

// next gives turns to the waiting streams. The caller holds mu.
func (t *Turns) next() {
	for t.taken < t.limit && len(t.waiting) > 0 {
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
		t.taken++
	}
}

// cancel ends the wait for a turn, or the turn if it has come meanwhile.
func (t *Turns) cancel(mine chan struct{}) {
	t.mu.Lock()
	i := slices.Index(t.waiting, mine)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.End(0)
	}
}

// End ends a turn, and adds more to the number of turns, within its bounds.
func (t *Turns) End(more int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	t.limit = min(mostTurns*t.least, max(t.least, t.limit+more))
	t.next()
	if t.taken == 0 {
		t.limit = t.least
	}
}
