// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// Generator makes resources besides those of providers, or in place of them.
//
// A generator is called for a view when its first proxy comes, with a request
// that is Forced, and again after each push that affects the view, until the last
// proxy of the view has gone. It then sets and deletes what has changed, by name; what it set before
// stays. Calls of all generators are made one at a time, with no lock held.
//
// The name of a resource is the one that its message has, if it has one: the server
// does not compare them, and SotW clients know a resource by its message only.
//
// A resource that a generator sets takes the place of that of a provider, of the
// same type and name. A wildcard subscription covers everything that generators
// set, of every type, besides what providers say it covers; so
// listeners that a generator sets are sent to an Envoy that asks for all
// listeners, and API listeners are not. Resources are sent in the order of their
// types: clusters, load assignments, listeners, routes and then the others, by
// type URL; within a response by name.
type Generator interface {
	// Name is the generator's in errors; it must be different from all others.
	Name() string
	// Generate brings a view's resources up to date. If it returns an error or
	// panics, nothing of what it has set in this call is taken, and the error is
	// logged.
	Generate(view View, push *PushContext, resources *Resources) error
	// Affected returns the views that a push may change the generator's resources of:
	// EveryView, or a function that accepts some; nil: none, and the push costs nothing
	// for any view. It is called once for each push, before Generate, and not for views
	// that are new: Generate is called for them in any case. If it panics all views
	// are affected.
	Affected(push *PushContext) func(View) bool
}

// EveryView accepts all views: what Generator.Affected returns if it cannot tell.
func EveryView(View) bool { return true }

// Resources is what a Generator sets for one view. It must not be used after the
// call of Generate.
//
// Setting a name twice in one call, or a name that another generator has set, is
// an error, which is logged: what was set first stays. So is a resource that is
// not valid (ValidateAll), cannot be encoded, or is a message of another type than its
// type URL names, if that begins with "type.googleapis.com/": the last good one of the name
// stays. With another type URL, which is that of a protocol on top of xDS, a message may be of any
// type, which clients are told in the Any that it comes in.
type Resources struct {
	owner   string // the generator's name
	overlay overlay
	staged  map[resource.Name]*overlaid // nil: deleted
	order   []resource.Name
	errs    []error
}

// Set sets a resource. The message must not be modified afterwards. Setting the
// message, by its pointer, that is already set changes nothing and costs next to
// nothing. A nil message hides the resource of providers of the name, as Hide does.
func (r *Resources) Set(typeURL, name string, message proto.Message) {
	if message == nil {
		r.Hide(typeURL, name)
		return
	}
	if old, ok := r.overlay.get(typeURL, name); ok && old.owner == r.owner && old.message == message {
		if _, again := r.staged[resource.Name{TypeURL: typeURL, Name: name}]; !again {
			return
		}
	}
	r.stage(resource.Name{TypeURL: typeURL, Name: name}, &overlaid{message: message, resource: &resource.State{
		TypeURL: typeURL, Name: name, Build: func() (proto.Message, error) { return message, nil },
	}})
}

// SetLazy sets a resource that is built when a client is subscribed to it, at most
// once, on any goroutine, with no lock held. If build returns nil there is none;
// if it fails or what it returns is not valid, the last good one stays. Unlike
// Set it always counts as a change: for those who are subscribed it is built.
func (r *Resources) SetLazy(typeURL, name string, build func() (proto.Message, error)) {
	owner := r.owner
	r.stage(resource.Name{TypeURL: typeURL, Name: name}, &overlaid{resource: &resource.State{
		TypeURL: typeURL, Name: name, Build: func() (proto.Message, error) {
			var m proto.Message
			err := failure.Part{In: failure.InGenerator, Name: owner}.Call(func() (err error) {
				if m, err = build(); err == nil && m != nil {
					err = resource.Valid(typeURL, m)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
			return m, nil
		},
	}})
}

// Hide hides the resource of providers of a name: the view's proxies are not sent it.
func (r *Resources) Hide(typeURL, name string) {
	if old, ok := r.overlay.get(typeURL, name); ok && old.owner == r.owner && old.resource == nil {
		return
	}
	r.stage(resource.Name{TypeURL: typeURL, Name: name}, &overlaid{})
}

// Delete deletes what the generator has set or hidden under a name: the
// resource of a provider shows again, if there is one. What was not set needs no deletion.
func (r *Resources) Delete(typeURL, name string) {
	r.stage(resource.Name{TypeURL: typeURL, Name: name}, nil)
}

// Names yields the names of a type that the generator had set or hidden before
// this call.
func (r *Resources) Names(typeURL string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, made := range r.overlay[typeURL].All() {
			if made.owner == r.owner && !yield(name) {
				return
			}
		}
	}
}

func (r *Resources) stage(name resource.Name, next *overlaid) {
	if name.TypeURL == "" || name.Name == "" {
		r.fail(name, resource.ErrNoName)
		return
	}
	if next != nil {
		next.owner = r.owner
	}
	if former, again := r.staged[name]; again {
		if former != nil && next != nil {
			r.fail(name, errTwice)
			return
		}
	} else {
		r.order = append(r.order, name)
	}
	if r.staged == nil {
		r.staged = make(map[resource.Name]*overlaid)
	}
	r.staged[name] = next
}

func (r *Resources) fail(name resource.Name, err error) {
	r.errs = append(r.errs, fmt.Errorf("generator %s: %s %s: %w", r.owner, name.TypeURL, name.Name, err))
}

func (r *Resources) joined() error { return errors.Join(r.errs...) }

// Resource is a resource that a function of GenerateAll returns.
type Resource struct {
	// Name is what clients subscribe to.
	Name string
	// Message is the resource; nil hides the resource of providers of this name.
	Message proto.Message
}

// GenerateAll returns a Generator of a function that returns all resources of a
// type for a view each time: what is not among them is deleted. Messages that are
// the same pointers as before cost a look each. It is for small sets of
// resources: every push affects all views. An error leaves everything as it was;
// ErrUnchanged does so without being logged.
func GenerateAll(name, typeURL string, all func(view View, push *PushContext) ([]Resource, error)) Generator {
	return &generatorOfAll{name: name, typeURL: typeURL, all: all}
}

// ErrUnchanged says that a function of GenerateAll has nothing new.
var ErrUnchanged = errors.New("unchanged")

type generatorOfAll struct {
	name, typeURL string
	all           func(View, *PushContext) ([]Resource, error)
}

// Name implements Generator.
func (g *generatorOfAll) Name() string { return g.name }

// Affected implements Generator.
func (g *generatorOfAll) Affected(*PushContext) func(View) bool { return EveryView }

// Generate implements Generator.
func (g *generatorOfAll) Generate(view View, push *PushContext, out *Resources) error {
	list, err := g.all(view, push)
	switch {
	case errors.Is(err, ErrUnchanged):
		return nil
	case err != nil:
		return err
	}
	now := make(map[string]struct{}, len(list))
	for _, r := range list {
		if _, again := now[r.Name]; again {
			out.fail(resource.Name{TypeURL: g.typeURL, Name: r.Name}, errTwice)
			continue
		}
		now[r.Name] = struct{}{}
		out.Set(g.typeURL, r.Name, r.Message)
	}
	for name := range out.Names(g.typeURL) {
		if _, ok := now[name]; !ok {
			out.Delete(g.typeURL, name)
		}
	}
	return nil
}

// namedGenerator is a generator with its name, which it was asked for once.
type namedGenerator struct {
	Generator
	part failure.Part
}

// newGenerators returns the generators of a server in their order.
func newGenerators(list []Generator) []namedGenerator {
	out := make([]namedGenerator, 0, len(list))
	names := make(map[string]struct{})
	for i, g := range list {
		if g == nil {
			panic(fmt.Sprintf("ads.New: Options.Generators[%d] is nil", i))
		}
		name := g.Name()
		if _, again := names[name]; again {
			panic("ads.New: two generators have the name " + name)
		}
		names[name] = struct{}{}
		out = append(out, namedGenerator{g, failure.Part{In: failure.InGenerator, Name: name}})
	}
	return out
}

// generate calls the generator for one view and returns the overlay that this
// makes, and the names that changed. A panic is an error.
func (g namedGenerator) generate(v View, before overlay, push *PushContext) (after overlay, changed []resource.Name, err error) {
	staged := &Resources{owner: g.part.Name, overlay: before}
	var refused error
	err = g.part.Call(func() error {
		if err := g.Generate(v, push, staged); err != nil {
			return err
		}
		after, changed, refused = before.apply(staged)
		return nil
	})
	if err != nil {
		return before, nil, err
	}
	return after, changed, refused
}
