// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	xdscache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// wildcardName subscribes to everything.
const wildcardName = "*"

// rename makes the names of a SotW request those of the subscription. A request
// with the same names, as every ACK is, costs a comparison of the two lists.
func (s *subscription) rename(req *discovery.DiscoveryRequest, sub xdscache.Subscription) {
	names, first := req.GetResourceNames(), s.watch.sotwTo == nil
	s.conn.cache.setWildcardLocked(s, sub.IsWildcard())
	if first {
		// Envoy waits for the answer before it starts, even if there is nothing; and
		// nothing may be left of what a client comes back with.
		s.owed = s.wildcard || req.GetVersionInfo() != "" && s.fullState()
	}
	if slices.Equal(names, s.named) {
		return
	}
	wanted := make(map[string]struct{}, len(names))
	for _, name := range names {
		if name == wildcardName {
			continue
		}
		wanted[name] = struct{}{}
		s.subscribe(name)
	}
	for _, name := range s.named {
		if _, ok := wanted[name]; !ok {
			s.unsubscribe(name)
		}
	}
	s.named = names
	if first && req.GetVersionInfo() != "" && s.typeURL == envoy.LoadAssignmentType {
		// The client comes back with assignments that may be gone meanwhile.
		for name := range wanted {
			s.forget(name)
		}
	}
}

// subscribe adds a name. It is sent if the client does not have it.
func (s *subscription) subscribe(name string) {
	e := s.entries[name]
	if e.named {
		return
	}
	s.entries[name] = entry{sent: e.sent, named: true}
	s.names++
	s.conn.cache.subscribeLocked(s, name)
	s.mark(name)
}

// unsubscribe removes a name; what was sent under it is none of the client's
// interest any more, except in a wildcard subscription.
func (s *subscription) unsubscribe(name string) {
	e := s.entries[name]
	if !e.named {
		return
	}
	s.conn.cache.unsubscribeLocked(s, name)
	s.names--
	if s.wildcard {
		s.set(name, entry{sent: e.sent})
		s.mark(name)
		return
	}
	s.set(name, entry{})
	delete(s.pending, name)
	delete(s.gone, name)
}

// resubscribe applies a delta request.
func (s *subscription) resubscribe(req *discovery.DeltaDiscoveryRequest, sub xdscache.Subscription) {
	first := s.watch.deltaTo == nil
	if first {
		s.owed = sub.IsWildcard()
		for name, v := range req.GetInitialResourceVersions() {
			if _, waiting := s.conn.warming[name]; waiting && s.typeURL == envoy.LoadAssignmentType {
				v = ""
			}
			s.set(name, entry{sent: remembered(s.typeURL, name, v)})
			s.mark(name)
		}
	}
	s.conn.cache.setWildcardLocked(s, sub.IsWildcard())
	for _, name := range req.GetResourceNamesSubscribe() {
		if name == wildcardName {
			continue
		}
		e := s.entries[name]
		s.subscribe(name)
		if e.named || e.sent == nil {
			// It wants to hear of it in any case: it may have forgotten the resource
			// (xDS protocol, "How the client specifies what resources to return"), or
			// there may be none (xDS protocol, "Knowing When a Requested Resource Does
			// Not Exist").
			s.forget(name)
		}
	}
	for _, name := range req.GetResourceNamesUnsubscribe() {
		if name == wildcardName {
			continue
		}
		known := s.entries[name].named
		s.unsubscribe(name)
		if known && s.wildcard {
			// In a wildcard subscription the server has to say whether it still
			// exists (xDS protocol, "Unsubscribing from resources").
			s.forget(name)
		}
	}
}
