// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// view is the state of a View. All of it is guarded by the cache's mutex.
type view struct {
	View
	// proxies counts the connections; the view ends with the last one.
	proxies int
}

// wrap adds the view to an error, which may be nil.
func (v *view) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("view (%s): %w", v, err)
}

// make builds a resource, which may be nil, for the view. An error is recorded once, with the view,
// however many views share the resource.
func (v *view) make(r *resource.State, failed *failure.List) {
	if err := r.Make(); err != nil {
		failed.Add(v.wrap(err))
	}
}

// resolver looks resources up in the layers of one moment. It is immutable, so that a new selection
// is prepared without a lock.
type resolver struct {
	view   *view
	layers layers
	failed *failure.List
}

// make builds a resource, which may be nil, for the view.
func (s resolver) make(r *resource.State) { s.view.make(r, s.failed) }

// named returns the resource of a name for a subscription by name, or nil.
func (s resolver) named(typeURL, name string) *resource.State {
	r, _ := s.layers.lookup(s.view.View, typeURL, name, s.failed)
	return r
}

// covered returns the resource of a name for a wildcard subscription, or nil if the name is not
// covered.
func (s resolver) covered(typeURL, name string) *resource.State {
	covered, err := s.layers.covers(s.view.View, typeURL, name)
	if err != nil {
		s.failed.Undone(err)
		return resource.NewMarker(typeURL, name, resource.Unavailable)
	}
	if !covered {
		return nil
	}
	return s.named(typeURL, name)
}

// all returns the resources that a wildcard subscription covers, in any order, without nil. A name
// may occur twice, with the same resource. ok is false if a provider failed to list its resources.
func (s resolver) all(typeURL string) (out []*resource.State, ok bool) {
	err := s.layers.each(s.view.View, typeURL, s.failed, func(_ string, r *resource.State) {
		if r != nil {
			out = append(out, r)
		}
	})
	if err != nil {
		s.failed.Undone(err)
		return nil, false
	}
	return out, true
}

var errIncomparable = errors.New("not comparable")

// checkKey returns an error for a value that cannot be the key of a map.
func checkKey(v any) error {
	if v == nil || isComparable(reflect.ValueOf(v)) {
		return nil
	}
	return fmt.Errorf("%T is %w", v, errIncomparable)
}

// isComparable is reflect.Value.Comparable without allocations.
func isComparable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Func, reflect.Map, reflect.Slice:
		return false
	case reflect.Interface:
		return v.IsNil() || isComparable(v.Elem())
	case reflect.Array:
		for i := range v.Len() {
			if !isComparable(v.Index(i)) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !isComparable(v.Field(i)) {
				return false
			}
		}
	default:
	}
	return true
}
