// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sync"
)

// load is a constant load by concurrent clients. Each of them makes requests in a loop.
type load struct {
	// stop ends the load.
	stop func()

	mu       sync.Mutex
	answers  map[string]int
	requests int
	lost     int
	firstErr error
}

// startLoad starts n clients, which make requests until stop. A request returns the name of the
// server that answered it, or an error if the request is lost. It must return.
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

// answered returns the number of requests with this answer so far.
func (l *load) answered(answer string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[answer]
}

// end ends the load. It returns an error if requests were lost, because no change should lose any.
func (l *load) end() (summary string, err error) {
	l.stop()
	summary = fmt.Sprintf("%d requests meanwhile, %d lost", l.requests, l.lost)
	if l.lost > 0 {
		err = fmt.Errorf("%s, the first one: %w", summary, l.firstErr)
	}
	return summary, err
}
