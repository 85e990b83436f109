// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/shared"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/trial"
)

// layer is the state of a provider at one moment, with the resources that were built from it.
type layer struct {
	Provided
	*namedProvider
	made *shared.Resources
	// number counts the layers of a provider, which begin with 1, after an empty one.
	number uint64
}

// noLayer returns the layer of a provider that has not provided anything.
func noLayer(of *namedProvider) *layer {
	return &layer{Provided: resourcesByType(nil), namedProvider: of, made: shared.New()}
}

// replaced returns the layer that replaces l.
func (l *layer) replaced(next Provided, changes Changes) *layer {
	out := &layer{Provided: next, namedProvider: l.namedProvider, made: l.made, number: l.number + 1}
	names := make([]resource.Name, len(changes.Names))
	for i, c := range changes.Names {
		names[i] = resource.Name{TypeURL: c.TypeURL, Name: c.Name}
	}
	out.made.Advance(out.number, changes.Everything != nil, names)
	return out
}

// names returns the results of Provided.Names, except for empty names.
func (l *layer) names(v View, typeURL string) (out []string, only bool, err error) {
	err = l.part.Call(func() error {
		names, ok := l.Names(l.view(v), typeURL)
		if only = ok; names != nil {
			out = slices.Collect(names)
		}
		return nil
	})
	return slices.DeleteFunc(out, func(name string) bool { return name == "" }), only, err
}

// isOpen is Gate.IsOpen. A layer without a Gate is open.
func (l *layer) isOpen(v View) (open bool, err error) {
	gate, gated := l.Provided.(Gate)
	if !gated {
		return true, nil
	}
	err = l.part.Call(func() error {
		open = gate.IsOpen(l.view(v))
		return nil
	})
	return open, err
}

// each calls visit with the names that a wildcard subscription covers, and with the answer for each
// name if it is known. The visits do not count if it returns an error.
func (l *layer) each(v View, typeURL string, visit func(name string, a Answer, known bool)) (only bool, err error) {
	lister, lists := l.Provided.(Lister)
	if !lists {
		// The provider may hold a lock while it yields its names, and visit calls it again.
		names, only, err := l.names(v, typeURL)
		for _, name := range names {
			visit(name, Answer{}, false)
		}
		return only, err
	}
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
				visit(name, a, true)
			}
		}
		return nil
	})
	return only, err
}

// covers is Provided.Covers.
func (l *layer) covers(v View, typeURL, name string) (covered, only bool, err error) {
	err = l.part.Call(func() error {
		covered, only = l.Covers(l.view(v), typeURL, name)
		return nil
	})
	return covered, only, err
}

// answer is Provided.Lookup.
func (l *layer) answer(v View, typeURL, name string) (a Answer, err error) {
	err = l.part.Call(func() error {
		a = l.Lookup(l.view(v), typeURL, name)
		return checkKey(a.Share)
	})
	return a, err
}

// resource returns the resource of an answer, or nil if there is none.
func (l *layer) resource(typeURL, name string, a Answer, failed *failure.List) *resource.State {
	switch {
	case a.State != nil && (a.State.resource.TypeURL != typeURL || a.State.resource.Name != name):
		failed.Undone(l.part.Wrap(fmt.Errorf("%s %s: %w: %s %s", typeURL, name, errOtherState, a.State.resource.TypeURL, a.State.resource.Name)))
		return resource.NewMarker(typeURL, name, resource.Unavailable)
	case a.State != nil:
		return &a.State.resource
	case a.resource != nil:
		return a.resource
	case a.Build == nil:
		return nil
	default:
		name := resource.Name{TypeURL: typeURL, Name: name}
		return l.made.Get(l.number, name, a.Share, func() *resource.State { return l.newResource(name, a) })
	}
}

var errOtherState = errors.New("answered with the state of another resource")

// newResource returns the resource that an answer describes.
func (l *layer) newResource(name resource.Name, a Answer) *resource.State {
	out := &resource.State{TypeURL: name.TypeURL, Name: name.Name}
	if a.StandIn != nil {
		out.StandIn = func() (proto.Message, error) {
			return l.build(name.TypeURL, func() (proto.Message, error) { return a.StandIn(), nil })
		}
	}
	out.Build = func() (proto.Message, error) {
		m, err := l.build(name.TypeURL, a.Build)
		if m == nil && err != nil && a.Without != nil {
			if rest, left := l.salvage(name, a, err); rest != nil {
				return rest, errors.Join(left...)
			}
		}
		return m, err
	}
	return out
}

// build calls a build function of the provider, and returns its message if it is valid and of the
// type. An error together with a message describes the parts that were left out.
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

// salvage builds a failing resource without the objects that make it fail, and returns an error for
// each of them; it returns nil if no subset helps. So a single invalid object does not affect the
// other objects of a shared resource, even if no client has an earlier state.
func (l *layer) salvage(name resource.Name, a Answer, err error) (m proto.Message, left []error) {
	var parts []Contribution
	attempt := func(without []Contribution, how Omission) (made proto.Message, failed error) {
		left := trial.SetOf(without)
		made, failed = l.build(name.TypeURL, func() (proto.Message, error) {
			built, all, failed := a.Without(func(c Contribution) Omission {
				if left.Has(c) {
					return how
				}
				return Included
			})
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
	if _, _ = attempt(nil, Included); len(parts) == 0 {
		return nil, nil
	}
	search := trial.NewSearch(parts, nil, int(Absent))
	for done, hopeless := false, false; !done; {
		made, failed := attempt(search.Without(), Omission(search.Depth))
		if made == nil {
			err = failed
		}
		if done, hopeless = search.Answer(made != nil); hopeless {
			return nil, nil
		}
	}
	m, failed := attempt(search.Bad, Omission(search.Depth))
	if m == nil {
		return nil, nil
	}
	for _, c := range search.Bad {
		left = append(left, &Fault{TypeURL: name.TypeURL, Name: name.Name, Status: FaultBuiltWithout, Object: c.Object, Text: err.Error(), cause: err})
	}
	return m, append(left, failed)
}

// layers are the layers of all providers at one moment, in their order: the first provider that has
// an answer for a name counts. It is immutable.
type layers []*layer

// names returns the names that a wildcard subscription covers. A name may be in it twice.
func (ls layers) names(v View, typeURL string) (out []string, err error) {
	for _, l := range ls {
		names, only, err := l.names(v, typeURL)
		if out = append(out, names...); err != nil || only {
			return out, err
		}
	}
	return out, nil
}

// answer returns the answer of the first provider that has one for a name, and the provider's
// layer, or nil.
func (ls layers) answer(v View, typeURL, name string) (*layer, Answer, error) {
	for _, l := range ls {
		if a, err := l.answer(v, typeURL, name); err != nil || !a.Next {
			return l, a, err
		}
	}
	return nil, Answer{}, nil
}

// mayBeCovered reports whether a provider of the program precedes the provider with an index, so
// that wildcard subscriptions may also cover names that the latter does not cover. The first layer,
// of resources of the program, has covered names only.
func (ls layers) mayBeCovered(before int) bool {
	return before > 1 && slices.ContainsFunc(ls[1:before], func(l *layer) bool { return l.number > 0 })
}
