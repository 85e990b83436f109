// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"iter"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// Provider makes resources on demand. Where a Generator sets for each view what
// there is, a Provider is asked by name for what clients are subscribed to, and
// says with each push which names may have changed: what no client is subscribed to
// costs nothing, however much there is, and a new view costs nothing before its
// clients subscribe. Package traffic has one.
//
// All resources but those of generators come from providers. They are asked in an order,
// and the first one that has an answer for a name counts: first the resources of
// Server.SetResource, then Options.Providers, and last the server's own provider of the
// services of the discovery. Generators come before all of them.
type Provider interface {
	// Name is the provider's in errors; it must be different from all others.
	Name() string
	// Attach is called once, by New, with the server: the provider asks it for a push
	// when something has changed, by ConfigUpdate with keys of its own.
	Attach(updater xdsupdate.XDSUpdater)
	// Group returns the provider's part of a proxy's view: see View.Policy. It is
	// called like Options.Group. When its answers have changed the provider says so
	// by Changes.Regroup.
	Group(node *core.Node, proxy *registry.Proxy) any
	// Provide returns the resources as they are in a push, and in what they may
	// differ from those that it returned last. It is called once for each push, one
	// call at a time, with no lock held. If it panics, or returns nil, the former
	// resources stay, that is logged, and with the next push everything is taken for
	// changed.
	Provide(push *PushContext) (Provided, Changes)
}

// Provided is what a Provider has at one moment. It is immutable, and its methods
// may be called from any goroutine, also while a later one is being made. They are
// called with locks of the server held: they must not block nor call the server,
// and leave what costs to Answer.Build. All that implement it may be a Lister.
type Provided interface {
	// Names yields the names that a wildcard subscription to a type covers in a
	// view, in any order, each once: of resources that it provides and of those of
	// the providers after it. Nil: none. Not only: the names that the providers after
	// it yield are covered too.
	Names(view View, typeURL string) (names iter.Seq[string], only bool)
	// Covers reports whether Names yields a name, and only what it does.
	Covers(view View, typeURL, name string) (covered, only bool)
	// Lookup says what is served under a name in a view.
	Lookup(view View, typeURL, name string) Answer
}

// Lister is an optional ability of Provided, for those of which a wildcard covers many
// resources that are found sooner together than one by one.
type Lister interface {
	Provided
	// List yields the names that Names does, each with what Lookup says of it. If it
	// panics the wildcard subscriptions of the view stay as they are.
	List(view View, typeURL string) (resources iter.Seq2[string, Answer], only bool)
}

// Answer says what is served under a name. The zero value: nothing, resources of the
// providers after this one are hidden.
type Answer struct {
	// Next: what the next provider says. The other fields do not count.
	Next bool
	// State is the resource, if the provider keeps it: whoever is answered with the same
	// one shares it, in all views. Share, Build and StandIn do not count. It has to be a
	// state of a resource of the type and name of the question; otherwise clients keep what
	// they have, and that is reported.
	State *ResourceState
	// Share must be comparable: views with equal values share the resource of the
	// name. It must not depend on anything but the view and the name.
	Share any
	// Build makes the resource, once for all views that share it, if a client is
	// subscribed to it, on any goroutine, with no lock held. If it returns nil there
	// is none; if it fails, or what it returns is not valid (ValidateAll), or is of another type, the last
	// good one that a client has stays, and the error is reported. A resource that
	// comes with an error is served: the error says what was left out of it. An error
	// is reported once for as long as it stays the same. Nil: there is none.
	Build func() (proto.Message, error)
	// Without makes the resource for a client that refuses it, without what some objects
	// contribute: their requests fail, or their connections are closed, and all others are
	// served. It returns all contributions too, those that are left out among them. It is
	// called like Build, again and again until it is known which contributions the client
	// refuses, and then whenever the resource changes. If it fails or returns nil the
	// client keeps what it has. Nil: nothing can be left out.
	Without func(out func(Contribution) bool) (proto.Message, []Contribution, error)
	// StandIn makes what is served if Build fails and no client has a former state;
	// nil: nothing is.
	StandIn func() proto.Message
	// resource is the resource, if the provider is the server's own of services.
	resource *resource.State
}

// Changes says in what Provided may differ from the one before. What it names and
// is equal is not sent again; what it does not name is not looked at.
type Changes struct {
	// Names are resources by type and name, and the views in which they may have changed. A name may be in
	// it twice.
	Names []ChangedName
	// Everything accepts the views and types of which everything may have changed;
	// nil: none.
	Everything func(view View, typeURL string) bool
	// Namespaces are those of the views that Everything may accept: it is not called for views of
	// others, so that a change costs what there is in its namespaces. Nil: all.
	Namespaces map[string]struct{}
	// Regroup: Group may answer otherwise than before; all proxies are grouped anew
	// when the push is published.
	Regroup bool
}

// ChangedName names a resource that may have changed.
type ChangedName struct {
	TypeURL, Name string
	// Uncovered: by itself the provider has no wildcard subscription cover the name,
	// neither before nor after.
	Uncovered bool
	// In accepts the views in which it may have; nil: all. It is called with locks of
	// the server held.
	In func(View) bool
}

// namedProvider is a provider with its name, which it was asked for once.
type namedProvider struct {
	Provider
	part failure.Part
	// builtIn: it is the server's own, whose panics are those of the server.
	builtIn bool
}

// view returns a view as the provider is given it.
func (p *namedProvider) view(v View) View { return v.SeenBy(p.part.Name) }

// newProviders returns the providers of a server in their order, its own with them.
func newProviders(own *ownResources, list []Provider, services *servicesProvider) []namedProvider {
	out := []namedProvider{{Provider: own, builtIn: true}}
	names := make(map[string]struct{})
	for i, p := range list {
		if p == nil {
			panic(fmt.Sprintf("ads.New: Options.Providers[%d] is nil", i))
		}
		name := p.Name()
		if _, again := names[name]; again {
			panic("ads.New: two providers have the name " + name)
		}
		names[name] = struct{}{}
		out = append(out, namedProvider{Provider: p, part: failure.Part{In: failure.InProvider, Name: name}})
	}
	return append(out, namedProvider{Provider: services, builtIn: true})
}

// provide asks the providers for their resources. Not ok: the services of a first state
// are missing, and no client may be answered from what there is.
func (s *Server) provide(push *PushContext, ch *change) (ok bool) {
	ch.layers, ch.changes = make(layers, len(s.providers)), make([]Changes, len(s.providers))
	last := len(s.providers) - 1
	s.provideOne(last, push, ch) // what it has read is what the others find in the push
	if s.services.incomplete && !s.built {
		return false
	}
	s.built, s.context = true, push
	for i := range last {
		s.provideOne(i, push, ch)
	}
	return true
}

func (s *Server) provideOne(i int, push *PushContext, ch *change) {
	p := &s.providers[i]
	var before *layer
	if s.cache.layers != nil {
		before = s.cache.layers[i]
	}
	var next Provided
	var changes Changes
	if p.builtIn {
		next, changes = p.Provide(push)
	} else {
		var err error
		if next, changes, err = p.provide(push); err != nil {
			s.cache.failures.Undone(err)
			ch.layers[i] = before
			return
		}
		if before == nil || ch.unsure {
			changes.Everything, changes.Namespaces = acceptAll, nil
		}
	}
	ch.changes[i], ch.layers[i] = changes, newLayer(before, p, next, changes)
}

// provide is Provider.Provide. A panic is an error, and so is nil.
func (p *namedProvider) provide(push *PushContext) (next Provided, changes Changes, err error) {
	err = p.part.Call(func() error {
		if next, changes = p.Provide(push); next == nil {
			return errNothing
		}
		return nil
	})
	return next, changes, err
}

var errNothing = errors.New("provided nil")

func acceptAll(View, string) bool { return true }

// ResourceState is one state of a resource that a provider keeps: see Answer.State. It
// is immutable.
type ResourceState struct{ resource resource.State }

// NewResourceState returns a state of a resource, of the type of the message, that is
// valid (ValidateAll) and encoded; otherwise the error says what is wrong, and the
// provider keeps the state that it has. The name has to be the one in the message, if
// that has one. The message is not kept.
func NewResourceState(name string, message proto.Message) (*ResourceState, error) {
	if message == nil {
		return nil, fmt.Errorf("resource %q: %w", name, resource.ErrNoMessage)
	}
	out := &ResourceState{resource: resource.State{TypeURL: resource.TypeURLOf(message), Name: name, Build: func() (proto.Message, error) {
		return message, errors.Join(resource.CheckName(name, message), resource.Validate(message))
	}}}
	if out.resource.Exists(); out.resource.Err != nil {
		return nil, out.resource.Err // it names the type and the name
	}
	return out, nil
}
