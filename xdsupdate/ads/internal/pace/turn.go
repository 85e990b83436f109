// SPDX-License-Identifier: Apache-2.0

// Package pace bounds how much work is done at a time, and how much for whom: turns, token
// buckets, and the allowances of connections.
package pace

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"
)

// longestTurn ends the turn of a client that does not answer: it is far away, slow
// or dead, and keeps no processor busy. A large response takes a few milliseconds
// of one, more if others compete for it.
const longestTurn = 50 * time.Millisecond

// mostTurns is how many times more turns there may be at most.
const mostTurns = 32

// Turns bound how many large responses are on their way to clients at a time. A
// thousand proxies that connect at once are to have megabytes each. Sent all at
// once, they would share the processors, and as many goroutines would run before
// the one that has a changed endpoint for another client (BenchmarkChangeDuringConnects).
// In turns all are served earlier, because the buffers of few are used again.
//
// Turns are taken in the order in which streams ask for them. That clients do not
// answer in time says that the processors are not what they wait for: then there is
// one turn more, up to mostTurns times as many, so that a thousand distant clients are
// served in about twenty times longestTurn, and not one after the other; and thousands
// that mean to be late take no more than that. With each answer in time there is one
// less again, and as many as at first when none is taken.
type Turns struct {
	least int // how many there are at first; negative: there is no bound

	mu      sync.Mutex
	limit   int
	taken   int
	waiting []chan struct{} // one is closed when its turn has come
}

// NewTurns returns n turns at a time; 0: GOMAXPROCS, negative: any number.
func NewTurns(n int) *Turns {
	n = cmp.Or(n, runtime.GOMAXPROCS(0))
	return &Turns{least: n, limit: n}
}

// Take waits for a turn, or for the stream to end; then it returns nil. The turn
// lasts until end is called, but not for longer than longestTurn.
func (t *Turns) Take(ended <-chan struct{}) (end func()) {
	if t.least < 0 {
		return func() {}
	}
	mine := t.Ask()
	select {
	case <-mine:
	case <-ended:
		t.Cancel(mine)
		return nil
	}
	var once sync.Once
	timer := time.AfterFunc(longestTurn, func() { once.Do(func() { t.End(+1) }) })
	return func() {
		timer.Stop()
		once.Do(func() { t.End(-1) })
	}
}

// Ask asks for a turn: it has come when the channel is closed. Then End has to be called, and
// Cancel by who does not wait any more.
func (t *Turns) Ask() chan struct{} {
	mine := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, mine)
	t.next()
	return mine
}

// next gives turns to those who wait. The caller holds mu.
func (t *Turns) next() {
	for t.taken < t.limit && len(t.waiting) > 0 {
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
		t.taken++
	}
}

// Cancel ends the waiting of a stream, or its turn if it has come meanwhile.
func (t *Turns) Cancel(mine chan struct{}) {
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

// End ends a turn, and has more or less of them from now on.
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

// Taken returns how many turns are taken.
func (t *Turns) Taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}
