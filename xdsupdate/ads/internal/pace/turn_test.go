// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: as many turns as there are, the first to ask first; a turn ends with its
// end, or after longestTurn, once, and then there is one more.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const longer = 10 * longestTurn
		turns, never := NewTurns(1), make(chan struct{})
		begun := time.Now()
		forgotten := turns.Take(never)
		order := make(chan string, 3)
		take := func(name string, lasts time.Duration) {
			go func() {
				end := turns.Take(never)
				order <- name + " " + time.Since(begun).String()
				time.Sleep(lasts)
				end()
			}()
			synctest.Wait()
		}
		take("first", time.Millisecond)
		take("second", longer)
		take("third", 0)
		time.Sleep(longer)
		forgotten() // too late: the turn is another's
		forgotten()
		synctest.Wait()
		got := []string{<-order, <-order, <-order}
		slices.Sort(got)
		// The second has the turn that is one more, and of those there is none more when
		// the first has ended in time.
		want := []string{"first " + longestTurn.String(), "second " + longestTurn.String(), "third " + (2 * longestTurn).String()}
		if !slices.Equal(got, want) {
			t.Errorf("turns came at %v, want %v", got, want)
		}
		time.Sleep(longer)
		if turns.taken != 0 || turns.limit != 1 {
			t.Errorf("%d of %d turns are taken when all have ended, want 0 of 1", turns.taken, turns.limit)
		}
	})
}

// TestTurnOfEndedStream: a stream that ends does not wait any longer, and takes no
// turn from others.
func TestTurnOfEndedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, ended := NewTurns(1), make(chan struct{})
		end := turns.Take(nil)
		close(ended)
		if turns.Take(ended) != nil {
			t.Error("a stream that has ended has a turn")
		}
		end()
		turns.Take(nil)()
	})
}

// TestTurnsOfDistantClients: a thousand clients that take a second to answer do not wait for each
// other for long, and clients that answer at once take turns again.
func TestTurnsOfDistantClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, begun := NewTurns(2), time.Now()
		var clients sync.WaitGroup
		for range 1_000 {
			clients.Go(func() {
				end := turns.Take(nil)
				if waited := time.Since(begun); waited > 20*longestTurn {
					t.Errorf("a client has waited for %v", waited)
				}
				time.Sleep(time.Second)
				end()
			})
		}
		clients.Wait()
		distant, most := turns.Take(nil), 0
		for range 1_000 {
			clients.Go(func() {
				end := turns.Take(nil)
				turns.mu.Lock()
				most = max(most, turns.taken)
				turns.mu.Unlock()
				time.Sleep(time.Millisecond)
				end()
			})
		}
		clients.Wait()
		distant()
		if most > 3 {
			t.Errorf("%d near clients had a turn at a time, want 2, or 3 while a distant one is late", most)
		}
	})
}

// TestTurnGivenToAnEndedStream: a turn that has come when the stream ends is another's.
func TestTurnGivenToAnEndedStream(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		turns := NewTurns(1)
		mine := make(chan struct{})
		turns.waiting = append(turns.waiting, mine)
		turns.next()
		turns.cancel(mine)
		turns.Take(nil)()
	})
}

// TestNewTurns: how many turns there are.
func TestNewTurns(t *testing.T) {
	if n := NewTurns(0).limit; n != runtime.GOMAXPROCS(0) {
		t.Errorf("default: %d turns, want GOMAXPROCS", n)
	}
	turns := NewTurns(-1)
	for range 1_000 { // without a bound no stream waits
		turns.Take(nil)
	}
}
