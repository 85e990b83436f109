// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sync"
)

// load is a constant stream of requests of some clients, each of which sends the next
// as soon as it has an answer.
type load struct {
	// stop ends the stream.
	stop func()

	mu       sync.Mutex
	answers  map[string]int
	requests int
	lost     int
	firstErr error
}

// startLoad lets n clients make requests until stop. A request returns what answered
// it, or why it is lost; it must end.
func startLoad(n int, request func() (answer string, err error)) *load {
	l := &load{answers: map[string]int{}}
	stopped := make(chan struct{})
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
					l.record(request())
				}
			}
		})
	}
	l.stop = sync.OnceFunc(func() { close(stopped); running.Wait() })
	return l
}

func (l *load) record(answer string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	if err == nil {
		l.answers[answer]++
	} else if l.lost++; l.firstErr == nil {
		l.firstErr = err
	}
}

// answered returns how many requests were answered so until now.
func (l *load) answered(answer string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[answer]
}

// end ends the stream. Requests that are lost are an error: none of them has to be.
func (l *load) end() (summary string, err error) {
	l.stop()
	summary = fmt.Sprintf("%d requests meanwhile, %d lost", l.requests, l.lost)
	if l.lost > 0 {
		err = fmt.Errorf("%s, the first one: %w", summary, l.firstErr)
	}
	return summary, err
}
