// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: as many turns as there are, the first to ask first; a turn ends with its
// end, or after longestTurn, once.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const longer = 10 * longestTurn
		turns, never := newTurns(1), make(chan struct{})
		begun := time.Now()
		forgotten := turns.take(never)
		order := make(chan string, 3)
		take := func(name string, lasts time.Duration) {
			go func() {
				end := turns.take(never)
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
		for _, want := range []string{
			"first " + longestTurn.String(),
			"second " + (longestTurn + time.Millisecond).String(),
			"third " + (2*longestTurn + time.Millisecond).String(),
		} {
			if got := <-order; got != want {
				t.Errorf("got a turn: %s, want %s", got, want)
			}
		}
		time.Sleep(longer)
		if n := len(turns); n != 0 {
			t.Errorf("%d turns are taken when all have ended", n)
		}
	})
}

// TestTurnOfEndedStream: a stream that ends does not wait any longer.
func TestTurnOfEndedStream(t *testing.T) {
	turns, ended := newTurns(1), make(chan struct{})
	defer turns.take(ended)()
	close(ended)
	if turns.take(ended) != nil {
		t.Error("a stream that has ended has a turn")
	}
}

// TestNewTurns: how many turns there are.
func TestNewTurns(t *testing.T) {
	if n := cap(newTurns(0)); n != runtime.GOMAXPROCS(0) {
		t.Errorf("default: %d turns, want GOMAXPROCS", n)
	}
	turns := newTurns(-1)
	for range 1_000 { // without a bound nobody waits
		turns.take(nil)
	}
}
