// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"unique"

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

// named returns the resource of a name for a subscription by name, or nil.
func (s resolver) named(typeURL, name string) *resource.State {
	r, _ := s.layers.lookup(s.view, typeURL, name, s.failed)
	return r
}

// covered returns the resource of a name for a wildcard subscription, or nil if the name is not
// covered.
func (s resolver) covered(typeURL, name string) *resource.State {
	covered, err := s.layers.covers(s.view, typeURL, name)
	if err != nil {
		s.failed.Undone(err)
		return resource.NewMarker(typeURL, name, resource.Unavailable)
	}
	if !covered {
		return nil
	}
	return s.named(typeURL, name)
}

// all calls visit with the resources that a wildcard subscription covers, in any order. A name may be visited
// twice, then with the same resource, which may be nil. ok is false if a provider failed to list its resources.
func (s resolver) all(typeURL string, visit func(name string, r *resource.State)) (ok bool) {
	err := s.layers.each(s.view, typeURL, s.failed, visit)
	s.failed.Undone(err)
	return err == nil
}

var errIncomparable = errors.New("not comparable")

// checkKey returns an error for a value that cannot be the key of a map.
func checkKey(v any) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%T is %w", v, errIncomparable)
		}
	}()
	_ = map[any]struct{}(nil)[v] // panics then, also for a map without keys
	return nil
}
