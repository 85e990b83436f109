// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"weak"

	"google.golang.org/protobuf/proto"
)

// layer is what a provider has at one moment, with the resources that were made of
// it. A nil layer has nothing.
type layer struct {
	Provided
	owner string
	made  *madeResources
	// number counts the layers of a provider.
	number uint64
}

// madeResources are those that a provider's answers have led to, so that views
// share them. They belong to the newest layer; older ones, which may still be read
// by who prepares a selection, make their own.
//
// They are kept only as long as a client or its selection has them: a share key of
// views that are gone, or a name that is not asked for any more, leaves an entry
// behind, which is swept when there are as many of them as others.
type madeResources struct {
	mu      sync.Mutex
	number  uint64 // of the layer that they belong to
	entries map[resourceName]map[any]*madeResource
	count   int // of all share keys
	limit   int // of count, at which it is swept
}

// madeResource is a resource, or a former state of it.
type madeResource struct {
	resource weak.Pointer[resource]
	// stale: it is of an earlier layer; if the new one cannot be built it stays.
	stale bool
}

const sweepAtLeast = 1024

// newLayer returns the layer that takes the place of another, which may be nil.
func newLayer(old *layer, owner string, next Provided, changes Changes) *layer {
	out := &layer{Provided: next, owner: owner}
	if old == nil {
		out.made = &madeResources{entries: make(map[resourceName]map[any]*madeResource), limit: sweepAtLeast}
		return out
	}
	out.made, out.number = old.made, old.number+1
	out.made.advance(out.number, changes)
	return out
}

// advance makes resources stale that may have changed.
func (m *madeResources) advance(number uint64, changes Changes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number = number
	if changes.Everything != nil {
		for _, shared := range m.entries {
			outdate(shared)
		}
	} else {
		for _, c := range changes.Names {
			outdate(m.entries[resourceName{c.TypeURL, c.Name}])
		}
	}
	if m.count >= m.limit {
		m.sweep()
	}
}

func outdate(shared map[any]*madeResource) {
	for _, made := range shared {
		made.stale = true
	}
}

func (m *madeResources) sweep() {
	for name, shared := range m.entries {
		for share, made := range shared {
			if made.resource.Value() == nil {
				delete(shared, share)
				m.count--
			}
		}
		if len(shared) == 0 {
			delete(m.entries, name)
		}
	}
	m.limit = max(sweepAtLeast, 2*m.count)
}

// names is Provided.Names.
func (l *layer) names(v View, typeURL string) (iter.Seq[string], bool) {
	if l == nil {
		return nil, false
	}
	names, ok := l.Names(v, typeURL)
	return func(yield func(string) bool) {
		if names == nil {
			return
		}
		for name := range names {
			if name != "" && !yield(name) {
				return
			}
		}
	}, ok
}

// lookup returns the provided resource of a name; not ok: what is built in counts.
// The resource may be nil.
func (l *layer) lookup(v View, typeURL, name string) (r *resource, ok bool) {
	if l == nil {
		return nil, false
	}
	a := l.Lookup(v, typeURL, name)
	if a.BuiltIn || a.Build == nil {
		return nil, !a.BuiltIn
	}
	return l.share(resourceName{typeURL, name}, a), true
}

// share returns the resource of an answer: one that was made for a view that shares
// it, or a new one.
func (l *layer) share(name resourceName, a Answer) *resource {
	m := l.made
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.number != l.number {
		return l.newResource(name, a)
	}
	var former *resource
	made := m.entries[name][a.Share]
	if made != nil {
		former = made.resource.Value()
		if former != nil && !made.stale {
			return former
		}
	}
	out := l.newResource(name, a)
	if former != nil {
		out.fallback, out.reported = former.lastGood(), former.failure()
	}
	if made == nil {
		if m.entries[name] == nil {
			m.entries[name] = make(map[any]*madeResource)
		}
		made = &madeResource{}
		m.entries[name][a.Share] = made
		m.count++
	}
	made.resource, made.stale = weak.Make(out), false
	return out
}

func (l *layer) newResource(name resourceName, a Answer) *resource {
	return &resource{typeURL: name.typeURL, name: name.name, standIn: a.StandIn, build: func() (proto.Message, error) {
		m, err := a.Build()
		if m != nil && m.ProtoReflect().IsValid() {
			if invalid := validate(m); invalid != nil {
				m, err = nil, errors.Join(invalid, err)
			}
		}
		if err != nil {
			err = fmt.Errorf("provider %s: %w", l.owner, err)
		}
		return m, err
	}}
}
