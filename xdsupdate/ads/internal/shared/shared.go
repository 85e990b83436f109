// SPDX-License-Identifier: Apache-2.0

// Package shared keeps the resources that were built from the answers of a provider, so that views
// share them. It has weak references: a resource lasts as long as a client or a selection has it.
package shared

import (
	"sync"
	"weak"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// Resources are the resources of one provider. They belong to its newest layer, by number; a reader
// of an older layer builds its own.
//
// Resources are kept only as long as a client or its selection has them. The share key of a view
// that has ended, or a name without subscribers, leaves an entry behind. Such entries are swept
// when they may be half of all. Methods may be called from any goroutine.
type Resources struct {
	mu     sync.Mutex
	number uint64 // of the layer that they belong to
	// changed is the last layer that may have changed everything.
	changed uint64
	entries map[resource.Name]map[any]*entry
	count   int // of all share keys
	limit   int // the count that starts a sweep
}

// entry is a resource, or a former state of it.
type entry struct {
	resource weak.Pointer[resource.State]
	// good is the fallback of resource. If both turn out to be equal, clients keep this one.
	good weak.Pointer[resource.State]
	// number is the number of its layer.
	number uint64
	// stale means that the resource may have changed since.
	stale bool
}

const sweepAtLeast limit.Size = 1024

// New returns an empty set, of a layer with the number 0.
func New() *Resources {
	return &Resources{entries: make(map[resource.Name]map[any]*entry), limit: sweepAtLeast.Get()}
}

// Advance moves the resources to the next layer, which may have changed everything or some names.
// If the new state of a resource cannot be built, the former one stays.
func (s *Resources) Advance(number uint64, everything bool, names []resource.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number = number
	if everything {
		s.changed = number
	} else if s.count > 0 {
		for _, name := range names {
			for _, e := range s.entries[name] {
				e.stale = true
			}
		}
	}
	s.sweepIfFull()
}

// sweepIfFull drops the entries without users if they may be half of all.
func (s *Resources) sweepIfFull() {
	if s.count < s.limit {
		return
	}
	for name, keys := range s.entries {
		for share, e := range keys {
			if e.resource.Value() == nil && e.good.Value() == nil {
				delete(keys, share)
				s.count--
			}
		}
		if len(keys) == 0 {
			delete(s.entries, name)
		}
	}
	s.limit = max(sweepAtLeast.Get(), 2*s.count)
}

// Get returns the resource of a name in a layer: one that was made for a view with an equal
// share key, or a new one, whose fallback is the former state if there is one.
func (s *Resources) Get(number uint64, name resource.Name, share any, fresh func() *resource.State) *resource.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number != number {
		return fresh()
	}
	e := s.entries[name][share]
	var former *resource.State
	if e != nil {
		former = e.resource.Value()
		if former != nil && !e.stale && e.number >= s.changed {
			return former
		}
		if former == nil {
			former = e.good.Value()
		}
	}
	out := fresh()
	if former != nil {
		out.Fallback, out.Reported = former.LastGood(), former.Failure()
	}
	if e == nil {
		s.sweepIfFull()
		e = &entry{}
		if s.entries[name] == nil {
			s.entries[name] = make(map[any]*entry)
		}
		s.entries[name][share] = e
		s.count++
	}
	e.resource, e.good, e.number, e.stale = weak.Make(out), weak.Make(out.Fallback), number, false
	return out
}
