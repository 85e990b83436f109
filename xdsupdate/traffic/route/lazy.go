// SPDX-License-Identifier: Apache-2.0

package route

import "go.uber.org/atomic"

// slot is a value that is built when it is first needed. Two goroutines may both build it, with
// equal results, so that no goroutine waits.
type slot[V any] struct{ value atomic.Pointer[V] }

func (s *slot[V]) get(build func() V) V {
	if v := s.value.Load(); v != nil {
		return *v
	}
	v := build()
	s.value.Store(&v)
	return v
}

// lazy is a slot that knows how to make its value.
type lazy[V any] struct {
	slot[V]
	build func() V
}

func newLazy[V any](build func() V) *lazy[V] { return &lazy[V]{build: build} }

func (l *lazy[V]) get() V { return l.slot.get(l.build) }
