// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

var (
	// ErrRejected means that a proxy rejects a resource.
	ErrRejected = errors.New("rejected by the proxy")
	// ErrNotUpdated means that a resource cannot be built, so that proxies keep its last state, or do
	// not have it.
	ErrNotUpdated = errors.New("not updated")
)

// Fault is the reason why one proxy does not have one resource as its providers describe it: the
// proxy rejects the resource, or it cannot be built. Server.Faults lists the present faults. As an
// error it wraps ErrRejected, ErrNotUpdated, or the error of the build (FaultBuiltWithout); WaitApplied
// and Observer.Failed return it as an error.
type Fault struct { //nolint:errname // it is a record first: Faults lists it
	// Proxy, Stream and View are ID, Stream and View of the ProxyStatus. They are not set in an error that
	// is about all proxies.
	Proxy  string
	Stream uint64
	View   View
	// TypeURL and Name identify the resource. Name is "" if the proxy rejects a response that
	// cannot be divided further, and names no resource.
	TypeURL, Name string
	Status        FaultStatus
	// Object is the object at fault, if it is known. Each of several objects has a Fault of its own.
	Object configstore.ConfigKey
	// Version is the version of the rejected response, or "" if the resource cannot be built.
	Version string
	// Text is the text of the NACK, or the error of the build. Of a long NACK it is the first 4 KiB, with
	// its length, and less if the proxy rejects more than 64 resources of a type.
	Text string
	// Since is when the fault was found, or when this state was rejected first. Times is how often the
	// proxy rejected the state.
	Since time.Time
	Times int
	cause error
}

// FaultStatus is what proxies have instead of the resource.
type FaultStatus string

// The values of FaultStatus.
const (
	// FaultRejected means that the proxy keeps the state that it accepted before, if there is one. It
	// is sent the resource again when that changes, and from time to time.
	FaultRejected FaultStatus = "REJECTED"
	// FaultSearching means that the proxy is being sent the resource without some objects, to find
	// the rejected ones.
	FaultSearching FaultStatus = "SEARCHING"
	// FaultUnnamed is FaultRejected of a resource that the proxy rejects also without the contribution
	// of any object, so that no object can be named.
	FaultUnnamed FaultStatus = "UNNAMED"
	// FaultLeftOut means that the proxy has accepted the resource without Object. The fault remains while a
	// new state of Object is tried.
	FaultLeftOut FaultStatus = "LEFT_OUT"
	// FaultNotBuilt means that the resource cannot be built. Proxies keep its last state, if they have
	// one.
	FaultNotBuilt FaultStatus = "NOT_BUILT"
	// FaultBuiltWithout means that all proxies have the resource without Object, because it cannot be
	// built with it, or without other parts, which Text describes.
	FaultBuiltWithout FaultStatus = "BUILT_WITHOUT"
)

// Error names the proxy, unless the fault is about all, and the object, or else the resource.
func (f *Fault) Error() string {
	text := f.Text
	if errors.Is(f.cause, ErrRejected) {
		text = ErrRejected.Error() + ": " + text
	}
	switch {
	case f.Object != configstore.ConfigKey{} && f.Proxy == "":
		return fmt.Sprintf("%s is left out: %s", f.Object, text)
	case f.Object != configstore.ConfigKey{}:
		return fmt.Sprintf("%s is left out of %s %s for %s: %s", f.Object, f.TypeURL, f.Name, f.Proxy, text)
	case f.Status == FaultNotBuilt:
		return fmt.Sprintf("%s: view (%s): %v: %s", f.Proxy, f.View, ErrNotUpdated, f.Text)
	case f.Status == FaultBuiltWithout:
		return fmt.Sprintf("%s: view (%s): %s", f.Proxy, f.View, f.Text)
	case f.Status == FaultUnnamed:
		text = ErrRejected.Error() + ", also without the contribution of any object: " + f.Text
	}
	return fmt.Sprintf("%s: %s %s: %s", f.Proxy, f.TypeURL, cmp.Or(f.Name, f.Version), text)
}

// Unwrap returns the kind of the fault, or the error of the build.
func (f *Fault) Unwrap() error { return f.cause }

// Faults returns the present faults of all connected proxies, sorted by proxy, stream, type, name and
// object, and a channel that is closed when they may have changed: when a proxy answers or leaves, or is
// sent a response. It visits each subscription while it holds the lock that pushes need; subscriptions
// without faults cost nothing more.
func (s *Server) Faults() (list []Fault, changed <-chan struct{}) {
	c := s.cache
	c.locked(func() {
		for conn := range c.conns {
			for sub := range conn.all() {
				list = append(list, sub.faults()...)
			}
		}
		changed = c.awaitProgress()
	})
	slices.SortFunc(list, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.Proxy, b.Proxy), cmp.Compare(a.Stream, b.Stream), strings.Compare(a.TypeURL, b.TypeURL), compareFaults(a, b))
	})
	return list, changed
}

// compareFaults compares faults of one type at one proxy.
func compareFaults(a, b Fault) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Object.String(), b.Object.String()), strings.Compare(a.Text, b.Text))
}

// faults returns the present faults of a subscription.
func (s *subscription) faults() []Fault {
	out := s.rejections.faults()
	if s.selection != nil {
		for _, list := range s.selection.failing {
			out = append(out, list...)
		}
	}
	for i := range out {
		_ = s.identify(&out[i])
	}
	slices.SortFunc(out, compareFaults)
	return out
}

// identify sets the proxy and the type of a fault.
func (s *subscription) identify(f *Fault) *Fault {
	f.Proxy, f.Stream, f.View, f.TypeURL = s.conn.proxy.ID, s.conn.stream.about.Load().ID, s.conn.view.Value(), s.URL
	return f
}

// failing are the faults of resources that cannot be built, or not completely, by name.
type failing map[string][]Fault

// note records the result of building a resource, which is nil if there is none.
func (f *failing) note(name string, r *resource.State) {
	switch {
	case r.IsUnavailable():
	case r != nil && r.Err != nil:
		if *f == nil {
			*f = make(failing)
		}
		(*f)[name] = buildFaults(name, r, (*f)[name])
	case *f != nil:
		delete(*f, name)
	}
}

// buildFaults returns the faults in the error of a build: one for each object, and one for everything
// else. A known fault keeps its time.
func buildFaults(name string, r *resource.State, known []Fault) (out []Fault) {
	others := r.Kept
	var find func(error)
	find = func(err error) {
		switch e := err.(type) { //nolint:errorlint // it walks the tree itself
		case *Fault:
			out = append(out, *e)
		case interface{ Unwrap() []error }:
			for _, each := range e.Unwrap() {
				find(each)
			}
		case interface{ Unwrap() error }:
			find(e.Unwrap())
		default:
			others = others || err != nil
		}
	}
	if find(r.Err); others {
		f := Fault{Name: name, Status: FaultBuiltWithout, Text: r.Err.Error(), cause: r.Err}
		if r.Kept {
			f.Status, f.cause = FaultNotBuilt, ErrNotUpdated
		}
		out = append(out, f)
	}
	for i := range out {
		out[i].Since = time.Now()
		if was := slices.IndexFunc(known, func(k Fault) bool { return compareFaults(k, out[i]) == 0 }); was >= 0 {
			out[i].Since = known[was].Since
		}
	}
	return out
}
