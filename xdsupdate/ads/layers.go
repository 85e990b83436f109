// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// layers is what all providers have at one moment, in their order: the first one that
// has an answer for a name counts. It is immutable. An entry is nil until its provider
// has provided something.
type layers []*layer

// lookup returns the resource of a name; not ok: no provider has an answer. The resource
// may be nil: there is none.
func (ls layers) lookup(v View, typeURL, name string, failed *failure.List) (r *resource.State, ok bool) {
	for _, l := range ls {
		if r, ok = l.lookup(v, typeURL, name, failed); ok {
			return r, true
		}
	}
	return nil, false
}

// covers reports whether a wildcard subscription covers a name.
func (ls layers) covers(v View, typeURL, name string) (bool, error) {
	for _, l := range ls {
		covered, only, err := l.covers(v, typeURL, name)
		if err != nil || covered || only {
			return covered, err
		}
	}
	return false, nil
}

// each calls visit with the resources that a wildcard subscription covers, in any order.
// A name may be visited twice, then with the same resource, which may be nil.
func (ls layers) each(v View, typeURL string, failed *failure.List, visit func(name string, r *resource.State)) error {
	for i, l := range ls {
		only, err := l.each(v, typeURL, func(name string, a Answer, known bool) {
			r, ok := ls[:i].lookup(v, typeURL, name, failed)
			switch {
			case ok:
			case !known || a.Next:
				r, _ = ls[i:].lookup(v, typeURL, name, failed)
			default:
				r = l.resource(typeURL, name, a, failed)
			}
			visit(name, r)
		})
		if err != nil || only {
			return err
		}
	}
	return nil
}

// names returns the names that a wildcard subscription covers. A name may be in it twice.
func (ls layers) names(v View, typeURL string) (out []string, err error) {
	for _, l := range ls {
		only, err := l.names(v, typeURL, func(name string) { out = append(out, name) })
		if err != nil || only {
			return out, err
		}
	}
	return out, nil
}

// answer returns what the first provider that has an answer for a name says, and its
// layer; nil: none has one, or that could not be found out.
func (ls layers) answer(v View, typeURL, name string) (*layer, Answer) {
	for _, l := range ls {
		if l == nil {
			continue
		}
		a, err := l.answer(v, typeURL, name)
		if err != nil {
			return nil, Answer{}
		}
		if !a.Next {
			return l, a
		}
	}
	return nil, Answer{}
}

// mayBeCovered reports whether a provider of the program's comes before another one, so that
// wildcard subscriptions may cover also those names of the other that it does not cover.
func (ls layers) mayBeCovered(before int) bool {
	for _, l := range ls[:before] {
		if l != nil && !l.builtIn {
			return true
		}
	}
	return false
}
