// SPDX-License-Identifier: Apache-2.0

// Package snapshots serves resources that the host makes itself, a complete set for each node, as
// the SnapshotCache of go-control-plane does. It needs no registry and no configs.
//
//	nodes := snapshots.New()
//	server := ads.New(nil, ads.Options{Providers: []ads.Provider{nodes}})
//	server.Register(grpcServer) // and go server.Run(stop)
//	err := nodes.Set("edge-1", Resource{Name: "blue", Message: cluster}, Resource{Name: "web", Message: listener})
//
// The server compares a set with the one before and sends each client the difference in the order of
// xDS: clusters before the routes that reference them, removals last. A client never receives parts
// of two sets of its node in one response. A node without a set gets no response, as from
// go-control-plane, so that an Envoy that reconnects to a new process keeps its resources until Set:
// see Options.Optional.
//
// Every method is safe for concurrent use.
package snapshots

import (
	"fmt"
	"iter"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// Options configure Snapshots. The zero value works.
type Options struct {
	// Key returns the key under which Set has the resources of a node. Several nodes may share one
	// key. It is called with each first request of a stream, on any goroutine. The default is the ID
	// of the node.
	Key func(node *core.Node) string
	// Optional means that nodes without a set are answered with the resources of other providers and
	// of the server's services. By default they get no response until they have a set.
	Optional bool
}

// Snapshots is a provider of one set of resources for each node. Create it with New. It serves one
// server.
type Snapshots struct {
	key      func(*core.Node) string
	optional bool
	provided *state // the state of the last push; only Provide uses it

	mu      sync.Mutex
	nodes   pmap.Map[string, set]
	updater xdsupdate.XDSUpdater // nil before Attach
}

// Resource is a resource of a set.
type Resource struct {
	// Name is the name that clients subscribe to. It has to be the name in the message, if the
	// message has one.
	Name string
	// Message is the resource. It is not kept.
	Message proto.Message
}

// set is the resources of a node, by type URL and name. It is immutable.
type set map[string]map[string]*ads.ResourceState

var _ ads.Provider = (*Snapshots)(nil)

// New returns a provider without resources, for ads.Options.Providers. It starts no goroutine.
func New(opts ...Options) *Snapshots {
	o := options.One("snapshots.New", opts)
	if o.Key == nil {
		o.Key = (*core.Node).GetId
	}
	return &Snapshots{key: o.Key, optional: o.Optional}
}

// Set makes resources the complete set of a node: all others of its previous set are removed. The
// type of a resource is that of its message. Messages are encoded at once and not kept. If a
// resource is invalid (ValidateAll), has no message, or is there twice, the previous set stays, and
// the error names the node, the type and the resource.
func (s *Snapshots) Set(node string, resources ...Resource) error {
	next := set{}
	for _, r := range resources {
		state, err := ads.NewResourceState(r.Name, r.Message)
		if err != nil {
			return fmt.Errorf("set node %q: %w", node, err)
		}
		typeURL := "type.googleapis.com/" + string(r.Message.ProtoReflect().Descriptor().FullName())
		if next[typeURL] == nil {
			next[typeURL] = map[string]*ads.ResourceState{}
		}
		if _, again := next[typeURL][r.Name]; again {
			return fmt.Errorf("set node %q: %s %q is there twice", node, typeURL, r.Name)
		}
		next[typeURL][r.Name] = state
	}
	s.update(node, func(m pmap.Map[string, set]) pmap.Map[string, set] { return m.Set(node, next) })
	return nil
}

// Delete removes the set of a node. Connected clients of the node lose its resources, and later ones
// get no response: Set without resources gives them an empty set.
func (s *Snapshots) Delete(node string) {
	s.update(node, func(m pmap.Map[string, set]) pmap.Map[string, set] { return m.Delete(node) })
}

func (s *Snapshots) update(node string, change func(pmap.Map[string, set]) pmap.Map[string, set]) {
	s.mu.Lock()
	s.nodes = change(s.nodes)
	updater := s.updater
	s.mu.Unlock()
	if updater != nil {
		updater.ConfigUpdate(&xdsupdate.PushRequest{
			ConfigsUpdated: xdsupdate.KeySet(configstore.ConfigKey{Kind: configstore.GroupVersionKind{Kind: "Snapshot"}, Name: node}),
			Reason:         map[xdsupdate.TriggerReason]int{xdsupdate.ReasonConfig: 1},
		})
	}
}

// Name implements ads.Provider.
func (s *Snapshots) Name() string { return "snapshots" }

// Attach implements ads.Provider.
func (s *Snapshots) Attach(updater xdsupdate.XDSUpdater) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updater = updater
}

// Group implements ads.Provider: views with different keys differ.
func (s *Snapshots) Group(node *core.Node, _ *registry.Proxy) any { return s.key(node) }

// Provide implements ads.Provider.
func (s *Snapshots) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	s.mu.Lock()
	next := &state{s.nodes, s.optional}
	s.mu.Unlock()
	before := s.provided
	if before == nil {
		before = &state{}
	}
	s.provided = next
	return next, ads.Changes{Everything: next.changedSince(before)}
}

// state is the sets of all nodes at one moment. It is immutable.
type state struct {
	nodes    pmap.Map[string, set]
	optional bool
}

var _ ads.Gate = (*state)(nil)

// IsOpen implements ads.Gate.
func (s *state) IsOpen(view ads.View) bool {
	node, _ := view.Policy.(string)
	_, known := s.nodes.Get(node)
	return known || s.optional
}

// changedSince accepts the views of the nodes whose sets differ, with the types of both sets; nil
// accepts none. A push of many nodes asks once for each view, not once for each resource of each node.
func (s *state) changedSince(before *state) func(view ads.View, typeURL string) bool {
	type part struct{ node, typeURL string }
	changed := map[part]struct{}{}
	mark := func(e *pmap.Entry[string, set]) {
		if e == nil {
			return
		}
		for typeURL := range e.Value {
			changed[part{e.Key, typeURL}] = struct{}{}
		}
	}
	pmap.Changes(before.nodes, s.nodes, func(old, now *pmap.Entry[string, set]) bool {
		mark(old)
		mark(now)
		return true
	})
	if len(changed) == 0 {
		return nil
	}
	return func(view ads.View, typeURL string) bool {
		node, _ := view.Policy.(string)
		_, is := changed[part{node, typeURL}]
		return is
	}
}

// of returns the resources of a type in a view.
func (s *state) of(view ads.View, typeURL string) map[string]*ads.ResourceState {
	node, _ := view.Policy.(string)
	resources, _ := s.nodes.Get(node)
	return resources[typeURL]
}

// Names implements ads.Provided.
func (s *state) Names(view ads.View, typeURL string) (names iter.Seq[string], only bool) {
	return func(yield func(string) bool) {
		for name := range s.of(view, typeURL) {
			if !yield(name) {
				return
			}
		}
	}, false
}

// Covers implements ads.Provided.
func (s *state) Covers(view ads.View, typeURL, name string) (covered, only bool) {
	_, covered = s.of(view, typeURL)[name]
	return covered, false
}

// Lookup implements ads.Provided.
func (s *state) Lookup(view ads.View, typeURL, name string) ads.Answer {
	resource, ok := s.of(view, typeURL)[name]
	return ads.Answer{State: resource, Next: !ok}
}
