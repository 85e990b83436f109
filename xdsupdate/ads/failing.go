// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"encoding/json"
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

// LeftOut is an object that is left out of a resource for one proxy, and what the proxy
// said. A proxy is sent its contribution again when it has changed. Its JSON has the object
// as group, kind, namespace and name.
type LeftOut struct {
	Object configstore.ConfigKey
	Error  string
}

// LeftOut returns the objects that are left out of what connected proxies have, each once in
// a list, with one of its texts, sorted by kind, namespace and name: refused are those without
// which a proxy has accepted a resource, which it refuses with them, and unmade those with which a
// resource cannot be made, for all proxies. A refused object stays in the list until the proxy
// has accepted the resource with it, also while a new state of it is tried. It looks
// at each subscription with the lock that pushes need, and at nothing else of those that have
// nothing left out. Progress says when to call it again.
func (s *Server) LeftOut() (refused, unmade []LeftOut) {
	c, known := s.cache, make(map[*resource.State]bool)
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		for sub := range conn.all() {
			refused = append(refused, sub.acceptedWithout()...)
			unmade = append(unmade, sub.unmade(known)...)
		}
	}
	return eachOnce(refused), eachOnce(unmade)
}

// Progress returns a channel that is closed when a proxy next answers or leaves, or is
// sent something: when LeftOut may return something else than it did after this call.
func (s *Server) Progress() <-chan struct{} {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.cache.awaitProgress()
}

// acceptedWithout are the objects that the client has accepted resources without.
func (s *subscription) acceptedWithout() (out []LeftOut) {
	if s.quarantines == nil {
		return nil
	}
	for _, q := range s.quarantines.byName {
		out = append(out, q.accepted...)
	}
	return out
}

// unmade are the objects with which resources that the subscription selects cannot be made,
// but for those that are known; these are then known, too.
func (s *subscription) unmade(known map[*resource.State]bool) (out []LeftOut) {
	if s.selection == nil {
		return nil
	}
	for _, r := range s.selection.failing {
		if !known[r] {
			known[r], out = true, append(out, leftOutOf(r.Err)...)
		}
	}
	return out
}

// eachOnce sorts a list, and keeps one entry for each object.
func eachOnce(list []LeftOut) []LeftOut {
	slices.SortFunc(list, compareLeftOut)
	return slices.CompactFunc(list, func(a, b LeftOut) bool { return a.Object == b.Object })
}

// leftOutJSON is the JSON of a LeftOut.
type leftOutJSON struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Error     string `json:"error"`
}

// MarshalJSON implements json.Marshaler.
func (l LeftOut) MarshalJSON() ([]byte, error) {
	o := l.Object
	return json.Marshal(leftOutJSON{o.Kind.Group, o.Kind.Kind, o.Namespace, o.Name, l.Error})
}
