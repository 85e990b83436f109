// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// wildcardName subscribes to everything.
const wildcardName = "*"

// apply makes a subscription what a request says, under the cache's lock. It
// returns a selection that has to be prepared, or nil.
func (s *subscription) apply(r *request) *selection {
	first := !s.requested
	s.requested = true
	if !r.same && len(r.names)+len(r.subscribe)+len(r.unsubscribe) > 0 {
		s.acks.applied = 0 // there may be more to have
	}
	if r.delta {
		return s.resubscribe(r, first)
	}
	return s.rename(r, first)
}

// rename makes the names of a SotW request those of the subscription.
func (s *subscription) rename(r *request, first bool) *selection {
	if r.same && !first {
		return nil
	}
	s.legacy = (first || s.legacy) && len(r.names) == 0 && legacyWildcard(s.typeURL)
	wildcard := s.legacy || slices.Contains(r.names, wildcardName)
	topics := s.conn.cache.topics(s.typeURL, r.names)
	if !wildcard {
		s.keepOnly(topics)
	}
	if first {
		// Envoy waits for the answer before it starts, even if there is nothing; and
		// nothing may be left of what a client comes back with.
		back := r.version != ""
		s.owed = wildcard || back && fullState(s.typeURL, wildcard)
		s.returning = back && s.typeURL == envoy.LoadAssignmentType
		if back && !wildcard && hasStandIns(s.typeURL) && s.conn.view.Client == envoy.ForGRPC {
			s.has(standIns(s.typeURL, topics))
		}
	}
	return s.conn.cache.subscribe(s, wildcard, topics)
}

// resubscribe applies a delta request.
func (s *subscription) resubscribe(r *request, first bool) *selection {
	wildcard := s.wildcard()
	if first {
		wildcard = len(r.subscribe) == 0 && legacyWildcard(s.typeURL)
		s.resume(r.claimed)
		s.returning = r.claimed == nil
	}
	if len(r.subscribe)+len(r.unsubscribe) == 0 && !first {
		return nil
	}
	before := s.topics()
	add := s.conn.cache.topics(s.typeURL, r.subscribe)
	if !first || !s.returning {
		s.owe(s.wanted(add, before))
	}
	wildcard = wildcard || slices.Contains(r.subscribe, wildcardName)
	drop := s.conn.cache.known(s.typeURL, r.unsubscribe)
	if slices.Contains(r.unsubscribe, wildcardName) {
		wildcard = false
	}
	topics := without(union(before, add), drop)
	if wildcard {
		// Whether what is not subscribed by name any more still exists is owed too
		// (xDS protocol, "Unsubscribing from resources").
		s.owe(namesOf(intersection(before, drop)))
	} else {
		s.keepOnly(topics)
	}
	if first {
		s.owed = wildcard
	}
	made := s.conn.cache.subscribe(s, wildcard, topics)
	for _, t := range add { // those that came and went in one request
		s.conn.cache.index.of(s.typeURL).discard(t)
	}
	return made
}

// wanted returns the names of which a client wants to hear in any case, among those
// that it subscribes to: it may have forgotten what it asks for once more (xDS
// protocol, "How the client specifies what resources to return"), and there may be
// nothing under a name (xDS protocol, "Knowing When a Requested Resource Does Not
// Exist"). What it has by a wildcard it knows.
func (s *subscription) wanted(add, before []*topic) []string {
	again := intersection(before, add)
	return append(namesOf(again), s.sent.lacks(without(add, again))...)
}

// resume takes over what a delta client says that it has; nil: it says nothing.
func (s *subscription) resume(claimed *snapshot) {
	if claimed == nil {
		return
	}
	s.resumed = true
	s.has(claimed)
	if s.typeURL == envoy.LoadAssignmentType {
		s.owe(slices.DeleteFunc(s.conn.warming, func(name string) bool { return s.sent.find(name) == nil }))
		s.conn.warming = nil
	}
}

// keepOnly drops what the client has and is not subscribed to by name: it is none
// of its interest any more, and if it is subscribed to again it is sent again.
func (s *subscription) keepOnly(topics []*topic) {
	if s.sent.list.Len() == 0 {
		return
	}
	if s.selection != nil && !s.selection.wildcard {
		if gone := without(s.selection.topics, topics); len(gone) > 0 {
			s.forget(namesOf(gone))
		}
		if s.selection.snapshot != nil {
			return
		}
	}
	var gone []string
	for r := range s.sent.list.All() {
		for len(topics) > 0 && topics[0].name < r.name {
			topics = topics[1:]
		}
		if len(topics) == 0 || topics[0].name != r.name {
			gone = append(gone, r.name)
		}
	}
	s.forget(gone)
}

// legacyWildcard reports whether an empty first request of a type means
// everything (xDS protocol, "How the client specifies what resources to return"):
// of the types of the protocol only for clusters and listeners.
func legacyWildcard(typeURL string) bool {
	switch typeURL {
	case envoy.LoadAssignmentType, envoy.RouteType, scopedRouteType, virtualHostType, secretType, runtimeType, extensionType:
		return false
	default:
		return true
	}
}

const (
	scopedRouteType = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
	virtualHostType = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	secretType      = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" //nolint:gosec // a type URL
	runtimeType     = "type.googleapis.com/envoy.service.runtime.v3.Runtime"
	extensionType   = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

// topics returns the topics of names, sorted.
func (c *cache) topics(typeURL string, names []string) []*topic {
	t := c.index.of(typeURL)
	out := make([]*topic, 0, len(names))
	for _, name := range names {
		if name != wildcardName {
			out = append(out, t.topic(name))
		}
	}
	return sortTopics(out)
}

// known is topics for names of which only those matter that a client has.
func (c *cache) known(typeURL string, names []string) []*topic {
	t := c.index.of(typeURL)
	var out []*topic
	for _, name := range names {
		if p := t.topics[name]; p != nil {
			out = append(out, p)
		}
	}
	return sortTopics(out)
}

// The functions below take sorted topics without repetitions, and return such.

func union(a, b []*topic) []*topic {
	if len(a) == 0 {
		return b
	}
	out := make([]*topic, 0, len(a)+len(b))
	for _, p := range a {
		for len(b) > 0 && b[0].name < p.name {
			out, b = append(out, b[0]), b[1:]
		}
		if len(b) > 0 && b[0] == p {
			b = b[1:]
		}
		out = append(out, p)
	}
	return append(out, b...)
}

func without(a, b []*topic) []*topic {
	if len(b) == 0 {
		return a
	}
	out := make([]*topic, 0, len(a))
	for _, p := range a {
		for len(b) > 0 && b[0].name < p.name {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != p {
			out = append(out, p)
		}
	}
	return out
}

func intersection(a, b []*topic) []*topic { return without(a, without(a, b)) }

func namesOf(topics []*topic) []string {
	out := make([]string, len(topics))
	for i, t := range topics {
		out[i] = t.name
	}
	return out
}
