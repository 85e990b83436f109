// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"sync"
	"weak"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/trial"
)

// layer is what a provider has at one moment, with the resources that were made of
// it. A nil layer has nothing.
type layer struct {
	Provided
	*namedProvider
	made *madeResources // nil: built in
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
	mu     sync.Mutex
	number uint64 // of the layer that they belong to
	// changed is the layer in which everything may have changed the last time.
	changed uint64
	entries map[resourceName]map[any]*madeResource
	count   int // of all share keys
	limit   int // of count, at which it is swept
}

// madeResource is a resource, or a former state of it.
type madeResource struct {
	resource weak.Pointer[resource.State]
	// good is what resource falls back to. If both turn out equal, clients keep this one.
	good weak.Pointer[resource.State]
	// number is that of the layer that it is of.
	number uint64
	// stale: its name may have changed since.
	stale bool
}

const sweepAtLeast = 1024

// newLayer returns the layer that takes the place of another, which may be nil.
func newLayer(old *layer, of *namedProvider, next Provided, changes Changes) *layer {
	out := &layer{Provided: next, namedProvider: of}
	if of.builtIn {
		return out
	}
	if old == nil {
		out.made = &madeResources{entries: make(map[resourceName]map[any]*madeResource), limit: sweepAtLeast}
		return out
	}
	out.made, out.number = old.made, old.number+1
	out.made.advance(out.number, changes)
	return out
}

// advance makes resources stale that may have changed. If the new one cannot be built a stale one stays.
func (m *madeResources) advance(number uint64, changes Changes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number = number
	if changes.Everything != nil {
		m.changed = number
	} else if m.count > 0 {
		for _, c := range changes.Names {
			for _, made := range m.entries[resourceName{c.TypeURL, c.Name}] {
				made.stale = true
			}
		}
	}
	if m.count >= m.limit {
		m.sweep()
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

// names yields what Provided.Names does, but for empty names.
func (l *layer) names(v View, typeURL string, yield func(name string)) (only bool, err error) {
	if l == nil {
		return false, nil
	}
	err = l.part.Call(func() error {
		names, ok := l.Names(l.view(v), typeURL)
		if only = ok; names == nil {
			return nil
		}
		for name := range names {
			if name != "" {
				yield(name)
			}
		}
		return nil
	})
	return only, err
}

// each calls visit with the names that a wildcard subscription covers, and with what is
// served under them if that is known.
func (l *layer) each(v View, typeURL string, visit func(name string, a Answer, known bool)) (only bool, err error) {
	if l == nil {
		return false, nil
	}
	lister, lists := l.Provided.(Lister)
	if lists && l.builtIn {
		list, only := lister.List(v, typeURL)
		for name, a := range list {
			visit(name, a, true)
		}
		return only, nil
	}
	// Of what a provider of the program's panics in the middle of, nothing counts.
	var names []string
	var answers []Answer
	if lists {
		only, names, answers, err = l.list(lister, v, typeURL)
	} else {
		only, err = l.names(v, typeURL, func(name string) { names = append(names, name) })
	}
	if err != nil {
		return only, err
	}
	for i, name := range names {
		if lists {
			visit(name, answers[i], true)
		} else {
			visit(name, Answer{}, false)
		}
	}
	return only, nil
}

// list returns what Lister.List yields, but for empty names.
func (l *layer) list(lister Lister, v View, typeURL string) (only bool, names []string, answers []Answer, err error) {
	err = l.part.Call(func() error {
		list, ok := lister.List(l.view(v), typeURL)
		if only = ok; list == nil {
			return nil
		}
		for name, a := range list {
			if err := checkKey(a.Share); err != nil {
				return err
			}
			if name != "" {
				names, answers = append(names, name), append(answers, a)
			}
		}
		return nil
	})
	return only, names, answers, err
}

// covers is Provided.Covers.
func (l *layer) covers(v View, typeURL, name string) (covered, only bool, err error) {
	switch {
	case l == nil:
		return false, false, nil
	case l.builtIn:
		covered, only = l.Covers(v, typeURL, name)
		return covered, only, nil
	}
	err = l.part.Call(func() error {
		covered, only = l.Covers(l.view(v), typeURL, name)
		return nil
	})
	return covered, only, err
}

// lookup returns the provided resource of a name; not ok: what the next provider has
// counts. The resource may be nil.
func (l *layer) lookup(v View, typeURL, name string, failed *failure.List) (r *resource.State, ok bool) {
	if l == nil {
		return nil, false
	}
	a, err := l.answer(v, typeURL, name)
	switch {
	case err != nil:
		failed.Undone(err)
		return resource.NewMarker(typeURL, name, resource.Unavailable), true
	case a.Next:
		return nil, false
	}
	return l.resource(typeURL, name, a, failed), true
}

// answer is Provided.Lookup.
func (l *layer) answer(v View, typeURL, name string) (Answer, error) {
	if l.builtIn {
		return l.Lookup(v, typeURL, name), nil
	}
	var a Answer
	err := l.part.Call(func() error {
		a = l.Lookup(l.view(v), typeURL, name)
		return checkKey(a.Share)
	})
	return a, err
}

// resource returns the resource of an answer; nil: there is none.
func (l *layer) resource(typeURL, name string, a Answer, failed *failure.List) *resource.State {
	switch {
	case a.State != nil && !l.builtIn && (a.State.resource.TypeURL != typeURL || a.State.resource.Name != name):
		failed.Undone(l.part.Wrap(fmt.Errorf("%s %s: %w: %s %s", typeURL, name, errOtherState, a.State.resource.TypeURL, a.State.resource.Name)))
		return resource.NewMarker(typeURL, name, resource.Unavailable)
	case a.State != nil:
		return &a.State.resource
	case l.builtIn:
		return a.resource
	case a.Build == nil:
		return nil
	default:
		return l.share(resourceName{typeURL, name}, a)
	}
}

var errOtherState = errors.New("answered with the state of another resource")

// share returns the resource of an answer: one that was made for a view that shares
// it, or a new one.
func (l *layer) share(name resourceName, a Answer) *resource.State {
	m := l.made
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.number != l.number {
		return l.newResource(name, a)
	}
	var former *resource.State
	made := m.entries[name][a.Share]
	if made != nil {
		former = made.resource.Value()
		if former != nil && !made.stale && made.number >= m.changed {
			return former
		}
		if former == nil {
			former = made.good.Value()
		}
	}
	out := l.newResource(name, a)
	if former != nil {
		out.Fallback, out.Reported = former.LastGood(), former.Failure()
	}
	if made == nil {
		if m.entries[name] == nil {
			m.entries[name] = make(map[any]*madeResource)
		}
		made = &madeResource{}
		m.entries[name][a.Share] = made
		m.count++
	}
	made.resource, made.good, made.number, made.stale = weak.Make(out), weak.Make(out.Fallback), l.number, false
	return out
}

func (l *layer) newResource(name resourceName, a Answer) *resource.State {
	return &resource.State{TypeURL: name.typeURL, Name: name.name, StandIn: a.StandIn, Build: func() (proto.Message, error) {
		m, err := l.build(name.typeURL, a.Build)
		if m == nil && err != nil && a.Without != nil {
			if rest, left := l.salvage(name, a, err); rest != nil {
				return rest, errors.Join(left...)
			}
		}
		return m, err
	}}
}

// build returns what a function of the provider makes of a type if it is valid. An error beside a
// message says what is left out of it.
func (l *layer) build(typeURL string, f func() (proto.Message, error)) (m proto.Message, err error) {
	err = l.part.Call(func() error {
		built, failed := f()
		if built != nil && built.ProtoReflect().IsValid() {
			if invalid := resource.Valid(typeURL, built); invalid != nil {
				return errors.Join(invalid, failed)
			}
		}
		m = built
		return failed
	})
	return m, err
}

// salvage makes a resource that cannot be made without what keeps it from that, and says
// what that is; nil if nothing helps. So one object that nobody has foreseen costs the
// others of a shared resource nothing, also where no client has a former state.
func (l *layer) salvage(name resourceName, a Answer, err error) (m proto.Message, left []error) {
	var parts []Contribution
	attempt := func(out trial.Set[Contribution]) (made proto.Message, failed error) {
		made, failed = l.build(name.typeURL, func() (proto.Message, error) {
			built, all, failed := a.Without(out.Has)
			if all != nil {
				parts = all
			}
			return built, failed
		})
		if made != nil {
			if _, unencodable := resource.Marshal(made); unencodable != nil {
				return nil, unencodable
			}
		}
		return made, failed
	}
	if _, _ = attempt(nil); len(parts) == 0 {
		return nil, nil
	}
	search := trial.NewSearch(parts, nil)
	for done, hopeless := false, false; !done; {
		made, failed := attempt(trial.SetOf(search.Without()))
		if made == nil {
			err = failed
		}
		if done, hopeless = search.Answer(made != nil); hopeless {
			return nil, nil
		}
	}
	m, failed := attempt(trial.SetOf(search.Bad))
	if m == nil {
		return nil, nil
	}
	for _, c := range search.Bad {
		left = append(left, &LeftOutError{TypeURL: name.typeURL, Resource: name.name, Object: c.Object, Err: err})
	}
	return m, append(left, failed)
}

// LeftOutError says that a resource is made without the contribution of an object, for
// all proxies, because it cannot be made with it.
type LeftOutError struct {
	TypeURL, Resource string
	Object            configstore.ConfigKey
	// Err is why.
	Err error
}

// Error names the object.
func (e *LeftOutError) Error() string { return fmt.Sprintf("%s is left out: %v", e.Object, e.Err) }

// Unwrap returns Err.
func (e *LeftOutError) Unwrap() error { return e.Err }
