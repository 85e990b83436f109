// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
)

// Provider makes resources on demand. It is asked by name for subscribed resources, and reports with
// each push which names may have changed. So resources without subscribers cost nothing, and a new
// view costs nothing before its clients subscribe. Packages traffic, secrets and snapshots have one.
//
// All resources come from providers. They are asked in an order, and the first one that has an answer
// for a name counts: first the resources of Server.SetResource, then Options.Providers, and last the
// server's own provider of the services of the discovery.
type Provider interface {
	// Name identifies the provider in errors; it must be unique.
	Name() string
	// Attach is called once, by New, with the server. When resources have changed, the provider
	// requests a push with ConfigUpdate and keys of its own.
	Attach(updater xdsupdate.XDSUpdater)
	// Group returns the provider's part of a proxy's view, which must be comparable: see View.Policy. It is
	// called after Options.Proxy. If its results have changed, the provider sets Changes.Regroup.
	Group(node *core.Node, proxy *registry.Proxy) any
	// Provide returns the resources for a push, and their possible differences from the resources
	// that it returned last. It is called once for each push, one call at a time, with no lock
	// held. If it panics, or returns nil, the former resources stay, the failure is logged, and the
	// next push takes all resources for changed.
	Provide(push *PushContext) (Provided, Changes)
}

// Provided has the resources of a Provider at one moment. It is immutable, and its methods may be
// called from any goroutine, also while its successor is being made. They are called with locks of
// the server held: they must not block nor call the server, and leave expensive work to
// Answer.Build. An implementation may also be a Gate or a Lister.
type Provided interface {
	// Names yields the names that a wildcard subscription to a type covers in a view, in any order,
	// each once, from this provider and the providers after it. A nil sequence yields none. If only
	// is false, the names of the providers after it are covered, too.
	Names(view View, typeURL string) (names iter.Seq[string], only bool)
	// Covers reports whether Names yields a name, and the value of only.
	Covers(view View, typeURL, name string) (covered, only bool)
	// Lookup returns the answer for a name in a view.
	Lookup(view View, typeURL, name string) Answer
}

// Gate is an optional interface of Provided, for providers that learn the resources of a view after
// its clients have connected. Clients that come from another server would lose these resources by a
// response without them.
type Gate interface {
	Provided
	// IsOpen reports whether the resources of a view are known. As long as any provider is not open
	// for a view, first subscriptions of its clients to a type wait, also for the resources of other
	// providers. The push that opens the view answers them; it needs no Changes for that.
	// Clients that had a response follow later pushes regardless of IsOpen.
	IsOpen(view View) bool
}

// Lister is an optional interface of Provided, for providers with many resources under a wildcard
// that are found faster together than one by one.
type Lister interface {
	Provided
	// List yields the names that Names yields, each with the answer of Lookup. If it panics, the
	// wildcard subscriptions of the view stay as they are.
	List(view View, typeURL string) (resources iter.Seq2[string, Answer], only bool)
}

// Answer describes the resource of a name. The zero value means that there is none, and hides the
// resources of the providers after this one.
type Answer struct {
	// Next means that the next provider decides. The other fields do not count then.
	Next bool
	// State is the resource, if the provider keeps it. All views with the same State share it, and
	// Share, Build and StandIn do not count. It has to be a state of the type and name that Lookup
	// was called with; otherwise clients keep their state, and an error is reported.
	State *ResourceState
	// Share must be comparable: views with equal values share the resource of the name. It may
	// depend only on the view and the name.
	Share any
	// Build builds the resource, once for all views that share it, if a client is subscribed to it,
	// on any goroutine, with no lock held. If it returns nil, there is no resource. If it fails, or
	// its message is invalid (ValidateAll) or of another type, the last good state that a client
	// has stays, and the error is reported. A message that comes with an error is served: the error
	// describes the parts that were left out. An error is reported once for as long as it stays the
	// same. If Build is nil, there is no resource.
	Build func() (proto.Message, error)
	// Without builds the resource for a client that rejects it. For each object that contributes to
	// it, out returns how much of the contribution is left out; all other contributions are served.
	// It also returns all contributions, including the omitted ones. It is called like Build,
	// repeatedly until the rejected contributions are known, and then whenever the resource changes.
	// If it fails or returns nil, the client keeps its state. If Without is nil, no part can be left
	// out.
	Without func(out func(Contribution) Omission) (proto.Message, []Contribution, error)
	// StandIn builds the resource to serve if Build fails and no client has a former state; nil if
	// there is no such resource.
	StandIn func() proto.Message
	// resource is the resource, if the provider is the server's own of services.
	resource *resource.State
}

// Changes describes the possible differences between a Provided and its predecessor. Listed
// resources that are equal are not sent again; other resources are not compared.
type Changes struct {
	// Names are resources by type and name, and the views in which they may have changed. A name
	// may occur twice.
	Names []ChangedName
	// Everything accepts the views and types in which every resource may have changed; nil accepts
	// none.
	Everything func(view View, typeURL string) bool
	// Namespaces are the namespaces of the views that Everything may accept: it is not called for
	// views of other namespaces, so that the cost of a change depends only on these namespaces. Nil
	// means all.
	Namespaces map[string]struct{}
	// Regroup means that the results of Group may have changed: all proxies are grouped again when
	// the push is published.
	Regroup bool
}

// ChangedName names a resource that may have changed.
type ChangedName struct {
	TypeURL, Name string
	// Uncovered means that the provider itself has wildcard subscriptions cover the name neither
	// before nor after the change.
	Uncovered bool
	// Namespaces are the namespaces of the views in which the resource may have changed, and a change
	// costs only these; nil means all. The slice must not be modified.
	Namespaces []string
	// In accepts the views of these namespaces in which the resource may have changed; nil accepts
	// all. The server calls it with locks held.
	In func(View) bool
}

// namedProvider is a provider, or an own one of the server, with its name.
type namedProvider struct {
	part   failure.Part
	newest func(push *PushContext) (Provided, Changes) // Provider.Provide
}

// view returns the view that the provider gets.
func (p *namedProvider) view(v View) View { return v.SeenBy(p.part.Name) }

// newProviders returns the providers of a server in their order, including its own.
func newProviders(own *ownResources, list []Provider, services *servicesProvider) []namedProvider {
	named := func(name string, provide func(*PushContext) (Provided, Changes)) namedProvider {
		return namedProvider{failure.Part{In: failure.InProvider, Name: name}, provide}
	}
	out := []namedProvider{named("own", own.provide)}
	for i, p := range list {
		if p == nil {
			panic(fmt.Sprintf("ads.New: Options.Providers[%d] is nil", i))
		}
		n := named(p.Name(), p.Provide)
		if slices.ContainsFunc(out[1:], func(before namedProvider) bool { return before.part.Name == n.part.Name }) {
			panic("ads.New: two providers have the name " + n.part.Name)
		}
		out = append(out, n)
	}
	return append(out, named("services", services.provide))
}

// provide asks the providers for their resources. ok is false if the provider of services fails, or if
// the services for a first state are missing, so that no client may get a response.
func (s *Server) provide(push *PushContext, ch *change) (ok bool) {
	ch.layers, ch.changes = make(layers, len(s.providers)), make([]Changes, len(s.providers))
	last := len(s.providers) - 1
	// The services come first, because the others read their table from the push.
	if !s.provideOne(last, push, ch) || s.services.incomplete && s.cache.layers == nil {
		return false
	}
	for i := range last {
		s.provideOne(i, push, ch)
	}
	return true
}

// provideOne asks one provider. ok is false if it fails, so that its resources stay.
func (s *Server) provideOne(i int, push *PushContext, ch *change) (ok bool) {
	p := &s.providers[i]
	var before *layer
	if s.cache.layers != nil {
		before = s.cache.layers[i]
	} else {
		before = noLayer(p)
	}
	var next Provided
	var changes Changes
	if err := p.part.Call(func() error {
		if next, changes = p.newest(push); next == nil {
			return errNothing
		}
		return nil
	}); err != nil {
		s.cache.failures.Undone(err)
		ch.layers[i] = before
		return false
	}
	if before.number == 0 || ch.unsure {
		changes.Everything, changes.Namespaces = acceptAll, nil
	}
	ch.changes[i], ch.layers[i] = changes, before.replaced(next, changes)
	return true
}

var errNothing = errors.New("provided nil")

func acceptAll(View, string) bool { return true }

// ResourceState is one state of a resource that a provider keeps: see Answer.State. It is
// immutable.
type ResourceState struct{ resource resource.State }

// NewResourceState returns a state of a resource, of the type of the message, which is valid
// (ValidateAll) and encoded. On an error the provider keeps its state. The name has to be the name
// in the message, if the message has one. The message is not kept.
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

// PushContext is the input of one push: services, endpoints and configs (Root) of one moment, the same for
// all providers and views. It is immutable and costs next to nothing; a reference to it keeps the
// state of that moment in memory.
type PushContext struct {
	// Request is the request of the push; its keys tell a provider what may have changed.
	Request *xdsupdate.PushRequest
	moment  *moment
	table   *services.Table
	changed []ChangedHost
}

// ChangedHost is a host that has changed with a push.
type ChangedHost struct {
	Hostname registry.Hostname
	// EndpointsOnly means that its services are the same.
	EndpointsOnly bool
}

// Root returns the root of the push.
func (p *PushContext) Root() *xdsupdate.Root { return p.moment.root }

// ChangedHosts returns the hosts whose services or endpoints differ from those of the previous
// push. It must not be modified.
func (p *PushContext) ChangedHosts() []ChangedHost { return p.changed }

// ServicesNamed returns all services of a host name, visible or not, sorted by ComparePrecedence,
// or nil if there are none.
func (p *PushContext) ServicesNamed(hostname registry.Hostname) []*registry.Service {
	return p.table.ServicesNamed(hostname)
}

// Services yields all services, visible or not, sorted by CompareServices. Each call sorts them.
func (p *PushContext) Services() iter.Seq[*registry.Service] {
	return slices.Values(slices.SortedStableFunc(p.table.Services(), registry.CompareServices))
}

// ServicesOf returns the services of a host name that proxies of a view see: the services of their
// own namespace, or else of the oldest visible definition; nil if there are none.
func (p *PushContext) ServicesOf(view View, hostname registry.Hostname) []*registry.Service {
	return p.table.ServicesSeen(view.ofServices(), hostname)
}

// Endpoints returns the endpoints of a service, or nil if there are none.
func (p *PushContext) Endpoints(hostname registry.Hostname, namespace string) *xdsupdate.ServiceEndpoints {
	return p.table.Endpoints(hostname, namespace)
}

// moment is the captured input of a push. It is immutable. All responses are derived from it while
// the registries go on.
type moment struct {
	services services.Reader
	own      resourcesByType
	root     *xdsupdate.Root
}

// capture captures the input of a push; it is the Pusher's Capture.
func (s *Server) capture(req *xdsupdate.PushRequest, root *xdsupdate.Root) (exact bool) {
	m := &moment{root: root, own: s.own.capture()}
	full := req.Full || req.Everything() || s.cache.layers == nil
	exact = true
	if full || s.services.HasSnapshots() {
		m.services, exact = s.services.Read(root)
	}
	s.moment = m
	return exact
}
