// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"iter"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Provider makes resources on demand. Where a Generator sets for each view what
// there is, a Provider is asked by name for what clients are subscribed to, and
// says with each push which names may have changed: what no client is subscribed to
// costs nothing, however much there is, and a new view costs nothing before its
// clients subscribe. Package traffic has one.
//
// A provider's resources take the place of built-in ones; those of generators take
// the place of a provider's.
type Provider interface {
	// Name is the provider's in errors.
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
// and leave what costs to Answer.Build.
type Provided interface {
	// Names yields the names that a wildcard subscription to a type covers in a
	// view, in any order, each once: of provided resources and of built-in ones. Not
	// ok: the built-in names, and no others.
	Names(view View, typeURL string) (names iter.Seq[string], ok bool)
	// Covers reports whether Names yields a name.
	Covers(view View, typeURL, name string) bool
	// Lookup says what is served under a name in a view.
	Lookup(view View, typeURL, name string) Answer
}

// Answer says what is served under a name. The zero value: nothing, a built-in
// resource is hidden.
type Answer struct {
	// BuiltIn: the built-in resource, if there is one. The other fields do not count.
	BuiltIn bool
	// Share must be comparable: views with equal values share the resource of the
	// name. It must not depend on anything but the view and the name.
	Share any
	// Build makes the resource, once for all views that share it, if a client is
	// subscribed to it, on any goroutine, with no lock held. If it returns nil there
	// is none; if it fails, or what it returns is not valid (ValidateAll), the last
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
}

// Changes says in what Provided may differ from the one before. What it names and
// is equal is not sent again; what it does not name is not looked at.
type Changes struct {
	// Names are resources by type and name, and the views concerned. A name may be in
	// it twice.
	Names []ChangedName
	// Everything accepts the views and types of which everything may have changed;
	// nil: none.
	Everything func(view View, typeURL string) bool
	// Regroup: Group may answer otherwise than before; all proxies are grouped anew
	// when the push is published.
	Regroup bool
}

// ChangedName names a resource that may have changed.
type ChangedName struct {
	TypeURL, Name string
	// In accepts the views in which it may have; nil: all. It is called with locks of
	// the server held.
	In func(View) bool
}

// provide asks the provider for its resources.
func (s *Server) provide(push *PushContext, ch *change) {
	if s.provider == nil {
		return
	}
	ch.provided = s.cache.provided
	var next Provided
	var changes Changes
	err := s.providing.call(func() error {
		if next, changes = s.provider.Provide(push); next == nil {
			return errNothing
		}
		return nil
	})
	if err != nil {
		s.cache.failures.undone(err)
		return
	}
	if ch.provided == nil || ch.everything() {
		changes.Everything = acceptAll
	}
	ch.changes, ch.provided = changes, newLayer(ch.provided, s.providing, next, changes)
}

var errNothing = errors.New("provided nil")

func acceptAll(View, string) bool { return true }
