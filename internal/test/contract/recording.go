// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"sync"
	"time"
)

// Recording is what handlers received, in order. The zero value is ready for
// use.
type Recording[C any] struct {
	mu    sync.Mutex
	calls []C
	// grown is closed when a call is added; nil while no caller waits.
	grown chan struct{}
}

// Add appends a call.
func (r *Recording[C]) Add(call C) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	if r.grown != nil {
		close(r.grown)
		r.grown = nil
	}
}

// All returns the calls that were not yet taken. The caller may keep it.
func (r *Recording[C]) All() []C {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Take returns the calls that were not yet taken, and forgets them.
func (r *Recording[C]) Take() []C {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// Await waits until enough says yes to the calls that were not yet taken, and
// reports whether it did. enough must not call the Recording.
func (r *Recording[C]) Await(timeout time.Duration, enough func([]C) bool) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		r.mu.Lock()
		if enough(r.calls) {
			r.mu.Unlock()
			return true
		}
		if r.grown == nil {
			r.grown = make(chan struct{})
		}
		grown := r.grown
		r.mu.Unlock()
		select {
		case <-grown:
		case <-timer.C:
			return false
		}
	}
}
