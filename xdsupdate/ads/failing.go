// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// ErrNotUpdated means that a resource cannot be made, so that proxies keep its last state,
// or do not have it. What wraps it names the proxy, its view, the type and the name.
var ErrNotUpdated = errors.New("not updated")

// Failure is a resource that is not as it should be.
type Failure struct {
	Name string `json:"name"`
	// Error says why: what of the resource is left out, or why it cannot be made.
	Error string `json:"error"`
	// LeftOut are the objects without which it is made, as it cannot be made with them,
	// sorted by kind, namespace and name.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// NotUpdated: it cannot be made at all. Proxies keep its last state, if they have one.
	NotUpdated bool `json:"not_updated,omitempty"`
}

// failing are resources that are not as they should be, by name.
type failing map[string]*resource.State

// note takes over what became of a resource, which was made; nil: there is none.
func (f *failing) note(name string, r *resource.State) {
	switch {
	case r.IsUnavailable():
	case r != nil && r.Err != nil:
		if *f == nil {
			*f = make(failing)
		}
		(*f)[name] = r
	case *f != nil:
		delete(*f, name)
	}
}

// failed returns the failures of what a subscription selects.
func (s *subscription) failed() []Failure {
	if s.selection == nil || len(s.selection.failing) == 0 {
		return nil
	}
	var out []Failure
	for name, r := range s.selection.failing {
		out = append(out, Failure{Name: name, Error: r.Err.Error(), LeftOut: leftOutOf(r.Err), NotUpdated: r.Kept})
	}
	slices.SortFunc(out, func(a, b Failure) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// notUpdated returns what WaitApplied says of resources that cannot be made.
func (s *subscription) notUpdated() []error {
	var out []error
	for _, f := range s.failed() {
		if f.NotUpdated {
			out = append(out, fmt.Errorf("%s: view (%s): %w: %s", s.conn.proxy.ID, s.conn.view, ErrNotUpdated, f.Error))
		}
	}
	return out
}

// leftOutOf finds the LeftOutErrors that are joined in an error.
func leftOutOf(err error) []LeftOut {
	var out []LeftOut
	var find func(error)
	find = func(err error) {
		switch e := err.(type) { //nolint:errorlint // it walks the tree itself
		case *LeftOutError:
			out = append(out, LeftOut{e.Object, e.Err.Error()})
		case interface{ Unwrap() []error }:
			for _, each := range e.Unwrap() {
				find(each)
			}
		case interface{ Unwrap() error }:
			find(e.Unwrap())
		}
	}
	find(err)
	slices.SortFunc(out, compareLeftOut)
	return out
}

func compareLeftOut(a, b LeftOut) int {
	return cmp.Or(compareObjects(a.Object, b.Object), strings.Compare(a.Error, b.Error))
}

func compareObjects(a, b configstore.ConfigKey) int { return strings.Compare(a.String(), b.String()) }
