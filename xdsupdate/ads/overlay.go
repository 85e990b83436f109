// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"maps"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// overlay has the resources of generators for a view, by type URL and name. It is immutable.
type overlay map[string]pmap.Map[string, overlaid]

// overlaid is a resource of a generator.
type overlaid struct {
	owner    string          // the name of the generator, which need not be comparable itself
	message  proto.Message   // nil if it is lazy, or hides
	resource *resource.State // nil if it hides the provider's resource of the name
}

func (o overlay) get(typeURL, name string) (overlaid, bool) { return o[typeURL].Get(name) }

// apply returns the overlay with the staged changes of a generator, and the changed names. The
// error describes the rejected changes; the others are applied.
func (o overlay) apply(staged *Resources) (overlay, []resource.Name, error) {
	if len(staged.order) == 0 {
		return o, nil, staged.joined()
	}
	out := maps.Clone(o)
	if out == nil {
		out = make(overlay)
	}
	var changed []resource.Name
	for _, name := range staged.order {
		next := staged.staged[name]
		old, had := out.get(name.TypeURL, name.Name)
		if had && old.owner != staged.owner {
			if next != nil { // a generator cannot delete resources of another one
				staged.fail(name, fmt.Errorf("%w %q", errTaken, old.owner))
			}
			continue
		}
		if next == nil {
			if had {
				out[name.TypeURL] = out[name.TypeURL].Delete(name.Name)
				changed = append(changed, name)
			}
			continue
		}
		if next.resource != nil {
			if err := staged.check(name, next, old); err != nil {
				continue
			}
		}
		out[name.TypeURL] = out[name.TypeURL].Set(name.Name, *next)
		changed = append(changed, name)
	}
	return out, changed, staged.joined()
}

var (
	errTaken = errors.New("the name is taken by generator")
	errTwice = errors.New("set twice")
)

// check builds a resource at once unless it is lazy; if it is invalid the former one stays. A lazy
// resource falls back to the former one when it is built.
func (r *Resources) check(name resource.Name, next *overlaid, former overlaid) error {
	if next.message == nil {
		if former.resource != nil {
			next.resource.Fallback, next.resource.Reported = former.resource.LastGood(), former.resource.Failure()
		}
		return nil
	}
	err := resource.Valid(name.TypeURL, next.message)
	if err == nil {
		next.resource.Exists()
		err = next.resource.Err
	}
	if err != nil {
		r.fail(name, err)
	}
	return err
}

// buildLazy builds the lazy resources of some names before a lock is taken to subscribe to them,
// because their build functions are code of the program.
func (c *cache) buildLazy(conn *connection, typeURL string, names []string) {
	var lazy []*resource.State
	var of *view
	c.divided(len(names), func(from, to int) {
		if conn.view == nil || conn.view.overlay[typeURL].Len() == 0 {
			return
		}
		of = conn.view
		for _, name := range names[from:to] {
			if made, ok := conn.view.overlay.get(typeURL, name); ok && made.message == nil {
				lazy = append(lazy, made.resource)
			}
		}
	})
	for _, r := range lazy {
		of.make(r, c.failures)
	}
}
