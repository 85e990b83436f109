// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// load is clients that send requests without pause.
type load struct {
	t       *testing.T
	stop    atomic.Bool
	running sync.WaitGroup

	mu      sync.Mutex
	answers map[string]int
	total   int
	failed  int
	first   error // of the failed ones
}

// startLoad starts clients, each with connections of its own, that make calls until
// end. A call returns who answered, or why it failed.
func startLoad(t *testing.T, clients int, call func(transport *http.Transport) (answer string, err error)) *load {
	t.Helper()
	l := &load{t: t, answers: make(map[string]int)}
	for range clients {
		l.running.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			for !l.stop.Load() {
				l.add(call(transport))
			}
		})
	}
	t.Cleanup(func() {
		l.stop.Store(true)
		l.running.Wait()
	})
	return l
}

func (l *load) add(answer string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	if err == nil {
		l.answers[answer]++
	} else if l.failed++; l.first == nil {
		l.first = err
	}
}

// count returns how many requests were answered so by now, or all for "".
func (l *load) count(answer string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer == "" {
		return l.total
	}
	return l.answers[answer]
}

// more returns when some more requests have ended.
func (l *load) more(n int) {
	l.t.Helper()
	l.moreOf("", n)
}

// await returns when one more request was answered so.
func (l *load) await(answer string) {
	l.t.Helper()
	l.moreOf(answer, 1)
}

func (l *load) moreOf(answer string, n int) {
	l.t.Helper()
	want := l.count(answer) + n
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(testTimeout); l.count(answer) < want; <-poll.C {
		if time.Now().After(deadline) {
			l.t.Fatalf("%d requests answered by %q, want %d; %v", l.count(answer), answer, want, l.first)
		}
	}
}

// end ends the clients and fails the test if a request failed.
func (l *load) end() {
	l.t.Helper()
	l.stop.Store(true)
	l.running.Wait()
	if l.failed > 0 {
		l.t.Errorf("%d of %d requests failed, the first one: %v", l.failed, l.total, l.first)
		return
	}
	l.t.Logf("%d requests", l.total)
}
