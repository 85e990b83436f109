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

// Generator makes resources in addition to those of providers, or in place of them.
//
// A generator is called for a view when its first proxy connects, with a request that is Forced,
// and again after each push that affects the view, until the last proxy of the view has
// disconnected. It then sets and deletes the changed resources, by name; resources from earlier
// calls stay. The calls of all generators are made one at a time, with no lock held.
//
// The name of a resource is the one in its message, if the message has one. The server does not
// compare them, but SotW clients know a resource by its message only.
//
// A resource of a generator replaces the provider's resource of the same type and name. A wildcard
// subscription covers all resources of generators, of every type, in addition to the names that
// providers report. So listeners of a generator are sent to an Envoy that subscribes to all
// listeners, while API listeners are not. Resources are sent in the order of their types: clusters,
// load assignments, listeners, routes and then the others, by type URL; within a response by name.
type Generator interface {
	// Name identifies the generator in errors; it must be unique.
	Name() string
	// Generate brings a view's resources up to date. If it returns an error or panics, all changes
	// of this call are dropped, and the error is logged.
	Generate(view View, push *PushContext, resources *Resources) error
	// Affected returns a function that accepts the views whose resources of this generator may
	// change with a push: EveryView, or a function that accepts some. If it returns nil, the push
	// affects no view and costs nothing for any. It is called once for each push, before Generate.
	// Generate is called for new views in any case. If Affected panics, all views are affected.
	Affected(push *PushContext) func(View) bool
}

// EveryView accepts all views. Generator.Affected returns it if the views are not known.
func EveryView(View) bool { return true }

// Resources receives the resources of a Generator for one view. It must not be used after the call
// of Generate.
//
// Setting a name twice in one call, or a name that another generator has set, is an error, which is
// logged: the first resource stays. So is a resource that is invalid (ValidateAll), that cannot be
// encoded, or whose message has another type than its type URL, if that begins with
// "type.googleapis.com/": the last good resource of the name stays. Other type URLs belong to
// protocols on top of xDS: a message may have any type there, and its Any tells clients the type.
type Resources struct {
	owner   string // the generator's name
	overlay overlay
	staged  map[resource.Name]*overlaid // nil to delete
	order   []resource.Name
	errs    []error
}

// Set sets a resource. The message must not be modified afterwards. Setting the same message, by
// its pointer, again changes nothing and costs next to nothing. A nil message hides the provider's
// resource of the name, as Hide does.
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

// SetLazy sets a resource that is built when a client is subscribed to it, at most once, on any
// goroutine, with no lock held. If build returns nil, there is no resource; if build fails or its
// result is invalid, the last good resource stays. Unlike Set, it always counts as a change: the
// resource is built again for its subscribers.
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

// Hide hides the provider's resource of a name: proxies of the view do not get it.
func (r *Resources) Hide(typeURL, name string) {
	if old, ok := r.overlay.get(typeURL, name); ok && old.owner == r.owner && old.resource == nil {
		return
	}
	r.stage(resource.Name{TypeURL: typeURL, Name: name}, &overlaid{})
}

// Delete deletes the generator's resource of a name, or the effect of Hide: the resource of a
// provider becomes visible again, if there is one. Other names may be deleted without effect.
func (r *Resources) Delete(typeURL, name string) {
	r.stage(resource.Name{TypeURL: typeURL, Name: name}, nil)
}

// Names yields the names of a type that the generator had set or hidden before this call.
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
	// Name is the name that clients subscribe to.
	Name string
	// Message is the resource; nil hides the resource of providers of this name.
	Message proto.Message
}

// GenerateAll returns a Generator that calls a function, which returns all resources of a type for
// a view each time; other resources are deleted. A message with the same pointer as before costs a
// comparison. GenerateAll is for small sets of resources, because every push affects all views. An
// error leaves all resources as they were; ErrUnchanged does the same and is not logged.
func GenerateAll(name, typeURL string, all func(view View, push *PushContext) ([]Resource, error)) Generator {
	return &generatorOfAll{name: name, typeURL: typeURL, all: all}
}

// ErrUnchanged means that a function of GenerateAll has no change to report.
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

// namedGenerator is a generator with its name, which is read once.
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

// generate calls the generator for one view and returns the resulting overlay and the changed
// names. A panic becomes an error.
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
