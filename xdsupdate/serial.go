// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"sync"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// serial makes one call at a time, with no lock held: a call that comes while another
// one is made is made after it, by the goroutine that makes that one, and the caller
// does not wait. So it does not matter what is called back.
type serial struct {
	mu      sync.Mutex
	calling bool
	waiting []func()
}

// do makes a call, if the right to it holds, and those that come meanwhile. It panics
// in the end if one did.
func (s *serial) do(by right, call func()) {
	if !s.begin(by, call) {
		return
	}
	var first *guard.PanicError
	for ; call != nil; call = s.next() {
		if p := guard.Call(call); first == nil {
			first = p
		}
	}
	first.Again()
}

// begin reports whether the caller is to make the call now.
func (s *serial) begin(by right, call func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !by.holds() {
		return false
	}
	if s.calling {
		s.waiting = append(s.waiting, call)
		return false
	}
	s.calling = true
	return true
}

// next returns the next call that waits; nil if there is none.
func (s *serial) next() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.calling, s.waiting = false, nil
		return nil
	}
	call := s.waiting[0]
	s.waiting = s.waiting[1:]
	return call
}
