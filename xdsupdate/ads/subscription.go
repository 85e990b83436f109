// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"maps"
	"slices"
	"strings"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	xdscache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// responseBytes is how much a response holds before it is divided, where the
// protocol allows that: gRPC takes messages of up to 4 MiB by default.
const responseBytes = 2 << 20

// subscription is what one stream wants of one type, and what it has got. All of
// it is guarded by the cache's mutex.
//
// A change marks names as pending. Pending names are looked at when there is an
// open watch, so that a slow client costs one name, however often it changes.
type subscription struct {
	conn     *connection
	typeURL  string
	wildcard bool
	// entries has the names that are subscribed or that were sent.
	entries map[string]entry
	// pending has the names whose resource may differ from what was sent; gone
	// those of them that do not exist any more.
	pending map[string]struct{}
	gone    map[string]struct{}
	// sum is the sum of the hashes of what was sent: the version.
	sum uint64
	// owed: the client is answered even if nothing is new to it.
	owed bool
	// named are the names of the last SotW request; names counts those that are
	// subscribed, in either protocol.
	named []string
	names int

	watch watch
	acks  acks
}

// entry is one name of a subscription.
type entry struct {
	sent  *resource // nil: the client does not know it
	named bool      // subscribed by name
}

// watch is how a subscription can be answered: at most once.
type watch struct {
	sotw     *discovery.DiscoveryRequest
	sotwTo   chan xdscache.Response
	delta    *discovery.DeltaDiscoveryRequest
	deltaTo  chan xdscache.DeltaResponse
	inFlight *sotwResponse // the last SotW answer; go-control-plane may drop it
}

func (w *watch) open() bool { return w.sotw != nil || w.delta != nil }

func (w *watch) close() { w.sotw, w.delta = nil, nil }

func newSubscription(conn *connection, typeURL string) *subscription {
	return &subscription{
		conn: conn, typeURL: typeURL,
		entries: make(map[string]entry),
		pending: make(map[string]struct{}),
		gone:    make(map[string]struct{}),
	}
}

// mark notes that a resource may have changed.
func (s *subscription) mark(name string) { s.pending[name] = struct{}{} }

// set records what the client has.
func (s *subscription) set(name string, e entry) {
	old := s.entries[name]
	if old.sent != nil {
		s.sum -= old.sent.hash
	}
	if e.sent == nil && !e.named {
		delete(s.entries, name)
		return
	}
	if e.sent != nil {
		s.sum += e.sent.hash
	}
	s.entries[name] = e
}

// review marks everything that may differ after a change of the view.
func (s *subscription) review() {
	for name := range s.entries {
		s.mark(name)
	}
	if s.wildcard {
		s.conn.cache.table.names(s.conn.view, s.typeURL, s.mark)
	}
}

// forget makes sure that the client is sent the resource again, and is told if
// it does not exist.
func (s *subscription) forget(name string) {
	s.set(name, entry{sent: forgotten(s.typeURL, name), named: s.entries[name].named})
	s.mark(name)
}

// lookup returns the resource that the client may have under a name.
func (s *subscription) lookup(name string) *resource {
	v := s.conn.view
	if s.entries[name].named || wildcardBuiltIn(s.typeURL) {
		return s.conn.cache.table.lookup(v, s.typeURL, name)
	}
	return v.overlay[s.typeURL][name] // the others are sent to those who name them
}

// updates answers an open watch with what is new or changed, in the order of
// names, and sorts out what is gone.
func (s *subscription) updates() {
	if !s.watch.open() {
		return
	}
	var changed []*resource
	size, divisible := 0, s.watch.delta != nil || !s.fullState()
	for _, name := range slices.Sorted(maps.Keys(s.pending)) {
		if size >= responseBytes && divisible {
			break // the rest follows when the client has answered
		}
		delete(s.pending, name)
		e := s.entries[name]
		r := s.lookup(name)
		switch {
		case !e.named && !s.wildcard:
			s.set(name, entry{})
			continue
		case !r.exists():
			if e.sent != nil {
				s.gone[name] = struct{}{}
			}
			continue
		case !r.same(e.sent):
			changed = append(changed, r)
			size += len(r.any.GetValue())
		}
		delete(s.gone, name)
		s.set(name, entry{sent: r, named: e.named})
		s.warm(e.sent, r)
	}
	if len(changed) == 0 && !s.owed {
		return
	}
	s.answer(changed, nil)
}

// warm sends the load assignment of a cluster that changed once more. Envoy
// waits for it before it uses the new state of the cluster, and does not ask for
// what it is already subscribed to (xDS protocol, "Resource warming").
func (s *subscription) warm(before, after *resource) {
	if s.typeURL != envoy.ClusterType || before == nil || before.same(after) {
		return
	}
	eds := s.conn.subscriptions[envoy.LoadAssignmentType]
	if eds == nil {
		if s.conn.warming == nil {
			s.conn.warming = make(map[string]struct{})
		}
		s.conn.warming[after.name] = struct{}{}
		return
	}
	if e := eds.entries[after.name]; e.sent != nil {
		eds.forget(after.name)
	}
}

// removals answers an open watch with what is gone.
func (s *subscription) removals() {
	if !s.watch.open() || len(s.gone) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(s.gone))
	clear(s.gone)
	var emptied []*resource
	for _, name := range names {
		e := s.entries[name]
		if r := emptyAssignment(name); s.emptied(name) && !r.same(e.sent) {
			emptied = append(emptied, r)
		}
		s.set(name, entry{named: e.named})
	}
	if s.watch.delta != nil || s.fullState() || len(emptied) > 0 {
		s.answer(emptied, names)
	}
}

// emptied reports whether the client has to be sent an assignment without
// endpoints for one that is gone: SotW cannot say that it is gone. A client whose
// cluster is still there, but finds its endpoints in another way, is left alone:
// until it has found them it uses the assignment.
func (s *subscription) emptied(name string) bool {
	return s.watch.sotw != nil && s.typeURL == envoy.LoadAssignmentType && !s.wildcard &&
		!s.conn.cache.table.lookup(s.conn.view, envoy.ClusterType, name).exists()
}

func emptyAssignment(name string) *resource {
	return &resource{typeURL: envoy.LoadAssignmentType, name: name, build: func() proto.Message {
		return &endpointv3.ClusterLoadAssignment{ClusterName: name}
	}}
}

// fullState reports whether a SotW response has to list everything that the
// client is subscribed to, because what it does not list is taken for removed:
// clusters and listeners (xDS protocol, "Deleting resources"), and whatever is
// not subscribed by name.
func (s *subscription) fullState() bool {
	return s.wildcard || s.typeURL == envoy.ClusterType || s.typeURL == envoy.ListenerType
}

// answer uses up the open watch.
func (s *subscription) answer(changed []*resource, removed []string) {
	s.owed = false
	listed := changed
	if s.watch.sotw != nil && s.fullState() {
		listed = nil
		for _, e := range s.entries {
			if e.sent.exists() {
				listed = append(listed, e.sent)
			}
		}
	}
	slices.SortFunc(listed, func(a, b *resource) int { return strings.Compare(a.name, b.name) })
	// go-control-plane's channels have room for one SotW and two delta responses
	// of each of maxTypes types, and no watch is answered twice: this never blocks.
	if s.watch.sotw != nil {
		r := &sotwResponse{request: s.watch.sotw, version: version(s.sum), resources: listed, changed: changed}
		s.watch.inFlight = r
		s.watch.sotwTo <- r
	} else {
		s.watch.deltaTo <- &deltaResponse{
			request: s.watch.delta, version: version(s.sum), resources: listed, removed: removed,
		}
	}
	s.watch.close()
	s.acks.pushed++
}

// recover takes back a SotW answer that go-control-plane dropped, because a
// request came before it was sent.
func (s *subscription) recover() {
	r := s.watch.inFlight
	s.watch.inFlight = nil
	if r == nil || r.taken {
		return
	}
	s.acks.pushed--
	s.owed = s.fullState()
	for _, res := range r.changed {
		if _, ok := s.entries[res.name]; ok {
			s.forget(res.name)
		}
	}
}
