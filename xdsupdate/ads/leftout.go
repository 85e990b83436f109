// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// LeftOut is an object that is left out of a resource for one proxy, and what the proxy
// said. A proxy is sent its contribution again when it has changed. Its JSON has the object
// as group, kind, namespace and name.
type LeftOut struct {
	Object configstore.ConfigKey
	Error  string
}

// LeftOut returns the objects that are left out of what connected proxies have, each once in
// a list, with one of its texts, sorted by kind, namespace and name: refused are those without
// which a proxy has accepted a resource, which it refuses with them, and unmade those with which a
// resource cannot be made, for all proxies. A refused object stays in the list until the proxy
// has accepted the resource with it, also while a new state of it is tried. It looks
// at each subscription with the lock that pushes need, and at nothing else of those that have
// nothing left out. Progress says when to call it again.
func (s *Server) LeftOut() (refused, unmade []LeftOut) {
	c, known := s.cache, make(map[*resource.State]bool)
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		for _, sub := range conn.order {
			refused = append(refused, sub.acceptedWithout()...)
			unmade = append(unmade, sub.unmade(known)...)
		}
	}
	return eachOnce(refused), eachOnce(unmade)
}

// Progress returns a channel that is closed when a proxy next answers or leaves, or is
// sent something: when LeftOut may return something else than it did after this call.
func (s *Server) Progress() <-chan struct{} {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.cache.awaitProgress()
}

// acceptedWithout are the objects that the client has accepted resources without.
func (s *subscription) acceptedWithout() (out []LeftOut) {
	if s.quarantines == nil {
		return nil
	}
	for _, q := range s.quarantines.byName {
		out = append(out, q.accepted...)
	}
	return out
}

// unmade are the objects with which resources that the subscription selects cannot be made,
// but for those that are known; these are then known, too.
func (s *subscription) unmade(known map[*resource.State]bool) (out []LeftOut) {
	if s.selection == nil {
		return nil
	}
	for _, r := range s.selection.failing {
		if !known[r] {
			known[r], out = true, append(out, leftOutOf(r.Err)...)
		}
	}
	return out
}

// eachOnce sorts a list, and keeps one entry for each object.
func eachOnce(list []LeftOut) []LeftOut {
	slices.SortFunc(list, compareLeftOut)
	return slices.CompactFunc(list, func(a, b LeftOut) bool { return a.Object == b.Object })
}
