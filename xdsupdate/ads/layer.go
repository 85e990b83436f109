// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"sync"
	"weak"

	"google.golang.org/protobuf/proto"
)

// layer is what a provider has at one moment, with the resources that were made of
// it. A nil layer has nothing.
type layer struct {
	Provided
	part part
	made *madeResources
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
	// good is what resource falls back to. If both turn out equal, clients keep this one.
	good weak.Pointer[resource]
	// stale: it is of an earlier layer; if the new one cannot be built it stays.
	stale bool
}

const sweepAtLeast = 1024

// newLayer returns the layer that takes the place of another, which may be nil.
func newLayer(old *layer, of part, next Provided, changes Changes) *layer {
	out := &layer{Provided: next, part: of}
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
			if made.resource.Value() == nil && made.good.Value() == nil {
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

// of returns what the layer is part of, if there is one.
func (l *layer) of() part {
	if l == nil {
		return part{in: partProvider}
	}
	return l.part
}

// names returns what Provided.Names yields, but for empty names; nil if it is the
// built-in names that count.
func (l *layer) names(v View, typeURL string) (list []string, own bool, err error) {
	if l == nil {
		return nil, false, nil
	}
	err = l.part.call(func() error {
		names, ok := l.Names(v, typeURL)
		if own = ok; !ok || names == nil {
			return nil
		}
		for name := range names {
			if name != "" {
				list = append(list, name)
			}
		}
		return nil
	})
	return list, own, err
}

// covers reports whether a wildcard subscription covers a name; not own: if it covers
// the built-in one.
func (l *layer) covers(v View, typeURL, name string) (covered, own bool, err error) {
	if l == nil {
		return false, false, nil
	}
	err = l.part.call(func() error {
		if _, own = l.Names(v, typeURL); own {
			covered = l.Covers(v, typeURL, name)
		}
		return nil
	})
	return covered, own, err
}

// lookup returns the provided resource of a name; not ok: what is built in counts.
// The resource may be nil.
func (l *layer) lookup(v View, typeURL, name string, failed *failures) (r *resource, ok bool) {
	if l == nil {
		return nil, false
	}
	var a Answer
	err := l.part.call(func() error {
		a = l.Lookup(v, typeURL, name)
		return checkKey(a.Share)
	})
	switch {
	case err != nil:
		failed.undone(err)
		return encoded(typeURL, name, unavailable), true
	case a.BuiltIn || a.Build == nil:
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
		if former == nil {
			former = made.good.Value()
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
	made.resource, made.good, made.stale = weak.Make(out), weak.Make(out.fallback), false
	return out
}

func (l *layer) newResource(name resourceName, a Answer) *resource {
	return &resource{typeURL: name.typeURL, name: name.name, standIn: a.StandIn, build: func() (m proto.Message, err error) {
		err = l.part.call(func() error {
			built, failed := a.Build()
			if built != nil && built.ProtoReflect().IsValid() {
				if invalid := validate(built); invalid != nil {
					return errors.Join(invalid, failed)
				}
			}
			m = built
			return failed
		})
		return m, err
	}}
}
