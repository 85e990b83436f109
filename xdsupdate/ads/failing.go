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

// ErrNotUpdated means that a resource cannot be built, so that proxies keep its last state, or do
// not have it. An error that wraps it names the proxy, its view, the type and the name.
var ErrNotUpdated = errors.New("not updated")

// Failure describes a resource that cannot be built, or not with all its objects.
type Failure struct {
	Name string `json:"name"`
	// Error is the reason: the objects that are left out, or the error of the build.
	Error string `json:"error"`
	// LeftOut are the objects without which the resource is built, because it cannot be built with
	// them, sorted by kind, namespace and name.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// NotUpdated means that it cannot be built at all. Proxies keep its last state, if they have
	// one.
	NotUpdated bool `json:"not_updated,omitempty"`
}

// failing are the resources that have failures, by name.
type failing map[string]*resource.State

// note records the result of building a resource, which is nil if there is none.
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

// failed returns the failures of the selected resources of a subscription.
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

// notUpdated returns the errors of WaitApplied for resources that cannot be built.
func (s *subscription) notUpdated() []error {
	var out []error
	for _, f := range s.failed() {
		if f.NotUpdated {
			out = append(out, fmt.Errorf("%s: view (%s): %w: %s", s.conn.proxy.ID, s.conn.view, ErrNotUpdated, f.Error))
		}
	}
	return out
}

// LeftOutError means that a resource has no contribution of an object: for one proxy, because it
// rejects the resource with the object, or for all proxies, because the resource cannot be built
// with it.
type LeftOutError struct {
	// Proxy is the ID of the node, or "" for all proxies.
	Proxy             string
	TypeURL, Resource string
	Object            configstore.ConfigKey
	// Err is the reason. For one proxy it wraps ErrRejected and has the text of the NACK.
	Err error
}

// Error names the object and, for one proxy, the proxy and the resource.
func (e *LeftOutError) Error() string {
	if e.Proxy == "" {
		return fmt.Sprintf("%s is left out: %v", e.Object, e.Err)
	}
	return fmt.Sprintf("%s is left out of %s %s for %s: %v", e.Object, e.TypeURL, e.Resource, e.Proxy, e.Err)
}

// Unwrap returns Err.
func (e *LeftOutError) Unwrap() error { return e.Err }

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

// LeftOut is an object that is left out of a resource for one proxy, with the error of the NACK.
// The proxy is sent the object's contribution again when it has changed. Its JSON has the object as
// group, kind, namespace and name.
type LeftOut struct {
	Object configstore.ConfigKey
	Error  string
}

// LeftOut returns the objects that are left out of resources of connected proxies, each object once
// in a list, with one of its errors, sorted by kind, namespace and name. refused are objects that a
// proxy rejects in a resource, which it has accepted without them. unmade are objects that make a
// resource fail to build, for all proxies. A rejected object stays in the list until the proxy has
// accepted the resource with it, also while a new state of it is tried. LeftOut visits each
// subscription while it holds the lock that pushes need; subscriptions without such objects cost
// nothing more. Progress reports when to call it again.
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

// Progress returns a channel that is closed when a proxy next answers or leaves, or is sent a
// response: LeftOut may have another result then.
func (s *Server) Progress() <-chan struct{} {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.cache.awaitProgress()
}

// acceptedWithout returns the objects without which the client has accepted resources.
func (s *subscription) acceptedWithout() (out []LeftOut) {
	if s.quarantines == nil {
		return nil
	}
	for _, q := range s.quarantines.byName {
		out = append(out, q.accepted...)
	}
	return out
}

// unmade returns the objects that make selected resources of the subscription fail to build, except
// for the resources in known, and adds these resources to known.
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
