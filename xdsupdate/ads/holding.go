// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"weak"

	"github.com/cespare/xxhash/v2"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// holding is the part of a subscription that a request may change: the names that it subscribes to,
// and the resources that the client has. A request is applied to a copy of it, without the lock.
type holding struct {
	// selection is the selection of the subscription, or nil before there is one; its key and its topics are copied
	// at first.
	selection *selection
	selectionKey
	topics []*topic
	// sent, returning, legacy, resumed and mustAnswer are fields of the subscription.
	sent                                   *resource.Snapshot
	returning, legacy, resumed, mustAnswer bool
	// warming is the connection's field of that name. It is nil after the load assignments have
	// taken them over.
	warming []string
}

// holding returns the state that a request may change. It is called with the cache's mutex held.
func (s *subscription) holding() holding {
	h := holding{
		selection: s.selection, selectionKey: selectionKey{typeURL: s.URL, view: s.conn.view}, sent: s.Has,
		returning: s.Returning, legacy: s.legacy, resumed: s.Resumed, mustAnswer: s.MustAnswer, warming: s.conn.Warming,
	}
	if s.selection != nil {
		h.selectionKey, h.topics = s.selection.selectionKey, s.selection.topics
	}
	return h
}

// is reports whether a subscription still has the state of h. It is called with the cache's mutex
// held.
func (h *holding) is(s *subscription) bool {
	return s.selection == h.selection && s.conn.view == h.view && s.Has == h.sent && len(s.conn.Warming) == len(h.warming)
}

// changes reports whether a request may change the names of the subscription. It is called with the
// cache's mutex held.
func (s *subscription) changes(r *received) bool {
	switch {
	case s.selection == nil:
		return true
	case r.Delta:
		return r.Subscribe.Count+r.Unsubscribe.Count > 0
	default:
		return !r.Same
	}
}

// after applies a request. add are the topics of the names that the request has or subscribes to,
// drop the topics of the names that it unsubscribes from.
func (h holding) after(r *received, add, drop []*topic) holding {
	first := h.selection == nil
	if r.Delta {
		h.resubscribe(r, first, add, drop)
	} else {
		h.rename(r, first, add)
	}
	return h
}

// rename replaces the names by the names of a SotW request.
func (h *holding) rename(r *received, first bool, topics []*topic) {
	h.legacy = (first || h.legacy) && r.Names.Count == 0 && legacyWildcard(h.typeURL)
	wildcard := h.legacy || r.Names.Wildcard
	if !wildcard {
		h.keepOnly(topics)
	}
	if first {
		// Envoy waits for the response before it starts, even for an empty one; and a client that
		// comes back must not keep resources that are gone.
		back := r.Version != ""
		full := difference.Kind{TypeURL: h.typeURL, Wildcard: wildcard}.FullState()
		h.mustAnswer = wildcard || back && full
		h.returning = back && h.typeURL == envoy.LoadAssignmentType
		if back && !wildcard && full && h.view.Value().Client == envoy.ForGRPC {
			h.sent = difference.StandIns(h.typeURL, topics)
		}
	}
	h.wildcard, h.topics = wildcard, topics
}

// resubscribe applies a delta request.
func (h *holding) resubscribe(r *received, first bool, add, drop []*topic) {
	wildcard := h.wildcard
	if first {
		wildcard = r.Subscribe.Count == 0 && legacyWildcard(h.typeURL)
		h.resume(r.resumed)
		h.returning = r.resumed == nil
	}
	before := h.topics
	if !first || !h.returning {
		h.forgetState(h.wanted(add, before))
	}
	wildcard = (wildcard || r.Subscribe.Wildcard) && !r.Unsubscribe.Wildcard
	topics := index.Without(index.Union(before, add), drop)
	if wildcard {
		// The client must also be told whether a resource still exists that it unsubscribes from by
		// name (xDS protocol, "Unsubscribing from resources").
		h.forgetState(index.Names(index.Intersection(before, drop)))
	} else {
		h.keepOnly(topics)
	}
	if first {
		h.mustAnswer = wildcard
	}
	h.wildcard, h.topics = wildcard, topics
}

// forgetState makes sure that the client is sent the resources of names, or their removals.
func (h *holding) forgetState(names []string) {
	edits := make([]resource.Edit, len(names))
	for i, name := range names {
		edits[i] = resource.Edit{Name: name, Resource: resource.NewMarker(h.typeURL, name, resource.Unknown)}
	}
	h.sent = h.sent.With(edits)
}

// wanted returns the names that must be answered even if unchanged, among the names that a request
// subscribes to. The client may have forgotten a resource that it subscribes to again (xDS
// protocol, "How the client specifies what resources to return"), and there may be no resource of a
// name (xDS protocol, "Knowing When a Requested Resource Does Not Exist"). A client knows the
// resources that it has through a wildcard.
func (h *holding) wanted(add, before []*topic) []string {
	again := index.Intersection(before, add)
	return append(index.Names(again), difference.Missing(h.sent, index.Without(add, again))...)
}

// resume takes over the resources that a delta client lists, or nil if it lists none.
func (h *holding) resume(claimed *resource.Snapshot) {
	if claimed == nil {
		return
	}
	h.resumed = true
	h.sent = claimed
	if h.typeURL == envoy.LoadAssignmentType {
		var names []string
		for _, name := range h.warming {
			if h.sent.Find(name) != nil {
				names = append(names, name)
			}
		}
		h.forgetState(names)
		h.warming = nil
	}
}

// keepOnly drops the client's resources that it is not subscribed to by name: the client does not
// need them, and gets them again with a later subscription.
func (h *holding) keepOnly(topics []*topic) {
	var gone []string
	for r := range h.sent.List.All() {
		for len(topics) > 0 && topics[0].Name < r.Name {
			topics = topics[1:]
		}
		if len(topics) == 0 || topics[0].Name != r.Name {
			gone = append(gone, r.Name)
		}
	}
	h.sent = h.sent.Without(gone)
}

// legacyWildcard reports whether an empty first request of a type is a wildcard subscription (xDS
// protocol, "How the client specifies what resources to return"). Envoys begin so with clusters and
// listeners, but also with scoped routes and virtual hosts (Envoy 1.36 and 1.40).
func legacyWildcard(typeURL string) bool {
	switch typeURL {
	case envoy.LoadAssignmentType, envoy.RouteType, difference.SecretType, difference.ExtensionType, runtimeType:
		return false
	default:
		return true
	}
}

const runtimeType = "type.googleapis.com/envoy.service.runtime.v3.Runtime"

// maxRecalled bounds the number of snapshots in cache.recalled.
const maxRecalled limit.Size = 16

// recalled is a snapshot that was decoded from initial_resource_versions. It lasts as long as a
// client has it, so that clients that come back at the same time share it, and the responses to it.
type recalled struct {
	wire.VersionsKey
	snapshot weak.Pointer[resource.Snapshot]
}

// recall returns the snapshot that a first request of a delta client resumes. It takes the lock,
// and decodes without it.
func (c *cache) recall(conn *connection, r *received) *resource.Snapshot {
	if found := c.recognize(conn, r); found != nil {
		return found
	}
	made := r.InitialVersions.Snapshot()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recalled = slices.DeleteFunc(c.recalled, func(old recalled) bool { return old.snapshot.Value() == nil })
	if len(c.recalled) >= maxRecalled.Get() {
		c.recalled = slices.Delete(c.recalled, 0, 1)
	}
	c.recalled = append(c.recalled, recalled{r.InitialVersions.VersionsKey, weak.Make(made)})
	return made
}

// recognize returns a snapshot equal to the one that a request resumes, or nil. It looks first at
// the selection that the client will probably have. It takes the lock.
func (c *cache) recognize(conn *connection, r *received) *resource.Snapshot {
	key := selectionKey{typeURL: r.TypeURL, wildcard: r.Subscribe.Count == 0 || r.Subscribe.Wildcard}
	for name := range r.Subscribe.All() {
		if string(name) == wire.WildcardName {
			continue
		}
		key.sum += xxhash.Sum64(name)
		key.count++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key.view = conn.view
	for _, s := range c.selections[key.view.Value().Namespace][key] {
		if r.InitialVersions.Is(s.snapshot) {
			return s.snapshot
		}
	}
	for _, old := range c.recalled {
		if old.VersionsKey == r.InitialVersions.VersionsKey {
			return old.snapshot.Value()
		}
	}
	return nil
}
