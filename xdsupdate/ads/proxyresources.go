// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/redact"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
)

// ProxyResources are the resources of one stream of a proxy, at one moment.
type ProxyResources struct {
	Stream Stream
	// Node is what the proxy says of itself; it is to be read only.
	Node *core.Node
	// Resources are those that it was sent, is to be sent, or has named, in the order in which
	// types are sent (clusters, load assignments, listeners, routes, others), then by name.
	Resources []ProxyResource
}

// ProxyResource is one resource of a proxy.
type ProxyResource struct {
	TypeURL, Name string
	Status        ResourceStatus
	// Sent is the state that the proxy was sent last, and Accepted the one that it accepted
	// last and works with: the same if Status is StatusSynced. Of load assignments that come
	// in one response an Envoy may have taken a newer one, before another that it refused.
	Sent, Accepted StateOfResource
	// Error is what the proxy said when it refused a state; "" when it has accepted one
	// since. If it refused several resources together, and it is not known yet which of them
	// it means, all have the error.
	Error string
	// Since is when the state was sent that is not answered (StatusStale), or since when
	// the proxy accepts none (StatusError); otherwise zero.
	Since time.Time
	// LeftOut are the objects that are left out for this proxy: see Refusal.LeftOut.
	LeftOut []LeftOut
	// Pending: there is another state for the proxy, or none any more, and it was not sent
	// that yet.
	Pending bool
}

// ResourceStatus is what is known of a resource at a proxy. The values are those of
// CSDS (envoy.service.status.v3.ConfigStatus).
type ResourceStatus string

// The values of ResourceStatus.
const (
	// StatusSynced: the proxy has accepted what it was sent.
	StatusSynced ResourceStatus = "SYNCED"
	// StatusNotSent: the proxy was sent no state, because it is not its turn yet, or there
	// is none (Pending says which).
	StatusNotSent ResourceStatus = "NOT_SENT"
	// StatusStale: the proxy has not answered what it was sent.
	StatusStale ResourceStatus = "STALE"
	// StatusError: the proxy has refused what it was sent.
	StatusError ResourceStatus = "ERROR"
)

// StateOfResource is one state of a resource. The zero value stands for none. It is
// comparable: equal ones are the same state.
type StateOfResource struct{ resource *resource.State }

// Exists reports whether there is a state.
func (s StateOfResource) Exists() bool { return s.resource.IsPresent() }

// Version is that of the resource, a hash of its content, as delta clients are sent it;
// "" for none. The versions of SotW are those of responses: TypeStatus has them.
func (s StateOfResource) Version() string {
	if !s.Exists() {
		return ""
	}
	return resource.Version(s.resource.Hash)
}

// Made is when this server made the state; zero if there is none, or another server made it.
func (s StateOfResource) Made() time.Time {
	if !s.Exists() || s.resource.Made == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.resource.Made)
}

// ErrNoState means that there is no state, or that a proxy has brought it from another
// server, so that its content is not known here.
var ErrNoState = errors.New("the content is not known")

// Message decodes the state, which takes as long as decoding does. The message is the
// caller's. Keys and whatever else Envoy takes for secret in a resource (the option
// udpa.annotations.sensitive) are not in it but "[redacted]", nor is what cannot be
// decoded. The error is ErrNoState, wrapped, or says why it cannot be decoded.
func (s StateOfResource) Message() (proto.Message, error) {
	if !s.Exists() || s.resource.Value == nil {
		return nil, ErrNoState
	}
	r := s.resource
	m, err := r.Message()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.TypeURL, r.Name, err)
	}
	redact.Message(m)
	return m, nil
}

// Resources returns the resources of the proxies whose streams are selected, one after
// the other, each as it is when it is its turn; nil selects all. Streams come in the order
// in which they were opened. A proxy that has several streams comes several times.
//
// It costs nothing while nobody asks. It holds the lock that pushes need for as long as it
// takes to copy some pointers of one proxy; nothing is decoded but by the methods of
// StateOfResource. A proxy is shown nothing of which it was not sent, or to be sent, itself.
func (s *Server) Resources(selected func(Stream) bool) iter.Seq[ProxyResources] {
	return func(yield func(ProxyResources) bool) {
		for _, st := range s.streams.all() {
			if selected != nil && !selected(*st.about.Load()) {
				continue
			}
			var had []subscribed
			var node *core.Node
			s.cache.locked(func() { node, had = st.conn.subscribed() })
			if node == nil {
				continue // it has no identity yet, or has left
			}
			out := ProxyResources{Stream: *st.about.Load(), Node: node}
			for _, h := range had {
				out.Resources = append(out.Resources, h.resources()...)
			}
			if !yield(out) {
				return
			}
		}
	}
}

// all returns the streams that there are, in the order in which they were opened.
func (l *liveStreams) all() []*stream {
	l.mu.Lock()
	out := make([]*stream, 0, len(l.live))
	for s := range l.live {
		out = append(out, s)
	}
	l.mu.Unlock()
	slices.SortFunc(out, func(a, b *stream) int { return cmp.Compare(a.about.Load().ID, b.about.Load().ID) })
	return out
}

// subscribed is what is known of a subscription at one moment.
type subscribed struct {
	selectionState
	difference.Traits
	prepared   bool // else there is no snapshot yet
	sent       *resource.Snapshot
	unanswered []acks.Response
	unaccepted map[string]sequence.Unaccepted
	leftOut    []Refusal
}

// subscribed returns what is known of a connection; a nil node if it has no identity. It
// is called with the cache's mutex held.
func (c *connection) subscribed() (node *core.Node, out []subscribed) {
	if c.closed || c.view == nil {
		return nil, nil
	}
	for s := range c.all() {
		h := subscribed{sent: s.Has, unanswered: slices.Clone(s.Acks.Unanswered), unaccepted: maps.Clone(s.Unaccepted), leftOut: s.leftOut()}
		h.TypeURL = s.URL
		if s.selection != nil {
			h.Topics, h.Traits = s.selection.topics, s.traits()
			if h.prepared = s.selection.snapshot != nil; h.prepared {
				h.Snapshot = s.Snapshot()
			}
		}
		out = append(out, h)
	}
	return c.node, out
}

// resources returns what is known of each resource, by name.
func (h *subscribed) resources() (out []ProxyResource) {
	if !h.prepared {
		h.Snapshot = h.sent
	}
	var names []string
	for _, list := range []*resource.Snapshot{h.sent, h.Snapshot} {
		for r := range list.List.All() {
			if r.IsPresent() {
				names = append(names, r.Name)
			}
		}
	}
	for _, t := range h.Topics {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	first := make(map[string]*acks.Response) // of those that have not been answered
	for i := range slices.Backward(h.unanswered) {
		for _, r := range h.unanswered[i].Listed {
			first[r.Name] = &h.unanswered[i]
		}
	}
	leftOut := make(map[string][]LeftOut)
	for _, r := range h.leftOut {
		leftOut[r.Name] = r.LeftOut
	}
	for _, name := range slices.Compact(names) {
		r := h.resource(name, first[name])
		r.LeftOut = leftOut[name]
		out = append(out, r)
	}
	return out
}

// resource returns what is known of a resource, of which there may be a response that was
// not answered.
func (h *subscribed) resource(name string, unanswered *acks.Response) ProxyResource {
	sent, now := h.sent.Find(name), h.Snapshot.Find(name)
	p := ProxyResource{TypeURL: h.TypeURL, Name: name, Pending: !h.prepared || h.isPending(sent, now)}
	if !sent.IsPresent() {
		p.Status = StatusNotSent
		return p
	}
	if sent.Value == nil && now.IsPresent() && now.Same(sent) {
		sent = now // the client has brought it from another stream
	}
	p.Sent = StateOfResource{sent}
	refused, isRefused := h.unaccepted[name]
	p.Error = refused.Text
	switch {
	case isRefused && (unanswered == nil || refused.Refused.Same(sent)):
		p.Status, p.Since, p.Accepted = StatusError, refused.Since, stateOf(refused.Accepted)
	case isRefused:
		p.Status, p.Since, p.Accepted = StatusStale, unanswered.SentAt, stateOf(refused.Accepted)
	case unanswered != nil:
		p.Status, p.Since, p.Accepted = StatusStale, unanswered.SentAt, stateOf(unanswered.Before.Find(name))
	default:
		p.Status, p.Accepted = StatusSynced, p.Sent
	}
	return p
}

// stateOf returns the state that a resource, or marker, is.
func stateOf(r *resource.State) StateOfResource {
	if !r.IsPresent() {
		return StateOfResource{}
	}
	return StateOfResource{r}
}

// isPending reports whether a client that has one state is to be sent another.
func (h *subscribed) isPending(sent, now *resource.State) bool {
	switch {
	case now.IsPresent():
		return !sent.IsPresent() || !now.Same(sent)
	case sent.IsPresent():
		return !h.Keeps(sent, now, h.Traits)
	default:
		return false
	}
}
