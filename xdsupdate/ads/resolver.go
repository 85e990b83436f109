// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"unique"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// view is a View that is compared, and kept by thousands of clients, as a pointer.
type view = unique.Handle[View]

// resolver looks resources up in the layers of one moment. It is immutable, so that a new selection
// is prepared without a lock.
type resolver struct {
	view   View
	layers layers
	failed *failure.List
}

// make builds a resource, which may be nil, for the view. An error is recorded once, with the view,
// however many views share the resource.
func (s resolver) make(r *resource.State) {
	if err := r.Make(); err != nil {
		s.failed.Add(fmt.Errorf("view (%s): %w", s.view, err))
	}
}

// isOpen reports whether all providers know the resources of the view.
func (s resolver) isOpen() bool {
	for _, l := range s.layers {
		if open, err := l.isOpen(s.view); !open {
			s.failed.Undone(err)
			return false
		}
	}
	return true
}

// named returns the resource of a name for a subscription by name, or nil.
func (s resolver) named(typeURL, name string) *resource.State {
	r, _ := s.lookup(s.layers, typeURL, name)
	return r
}

// lookup returns the resource of a name in some of the layers, which may be nil. ok is false if their providers
// have no answer.
func (s resolver) lookup(in layers, typeURL, name string) (r *resource.State, ok bool) {
	l, a, err := in.answer(s.view, typeURL, name)
	switch {
	case err != nil:
		s.failed.Undone(err)
		return resource.NewMarker(typeURL, name, resource.Unavailable), true
	case l == nil:
		return nil, false
	}
	return l.resource(typeURL, name, a, s.failed), true
}

// covered returns the resource of a name for a wildcard subscription, or nil if the name is not
// covered.
func (s resolver) covered(typeURL, name string) *resource.State {
	for _, l := range s.layers {
		covered, only, err := l.covers(s.view, typeURL, name)
		switch {
		case err != nil:
			s.failed.Undone(err)
			return resource.NewMarker(typeURL, name, resource.Unavailable)
		case covered:
			return s.named(typeURL, name)
		case only:
			return nil
		}
	}
	return nil
}

// all calls visit with the resources that a wildcard subscription covers, in any order. A name may be visited
// twice, then with the same resource, which may be nil. ok is false if a provider failed to list its resources.
func (s resolver) all(typeURL string, visit func(name string, r *resource.State)) (ok bool) {
	for i, l := range s.layers {
		only, err := l.each(s.view, typeURL, func(name string, a Answer, known bool) {
			r, ok := s.lookup(s.layers[:i], typeURL, name)
			switch {
			case ok:
			case !known:
				r, _ = s.lookup(s.layers[i:], typeURL, name)
			case a.Next:
				r, _ = s.lookup(s.layers[i+1:], typeURL, name)
			default:
				r = l.resource(typeURL, name, a, s.failed)
			}
			visit(name, r)
		})
		if err != nil || only {
			s.failed.Undone(err)
			return err == nil
		}
	}
	return true
}

var errIncomparable = errors.New("not comparable")

// checkKey returns an error for a value that cannot be the key of a map.
func checkKey(v any) error {
	if p := guard.Call(func() { _ = map[any]struct{}(nil)[v] }); p != nil {
		return fmt.Errorf("%T is %w", v, errIncomparable)
	}
	return nil
}
