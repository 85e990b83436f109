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
	// Node is the node of the proxy; it must not be modified.
	Node *core.Node
	// Resources are the resources that the proxy was sent, is to be sent, or has subscribed to by
	// name, in the order of sending (clusters, load assignments, listeners, routes, others), then
	// by name.
	Resources []ProxyResource
}

// ProxyResource is one resource of a proxy.
type ProxyResource struct {
	TypeURL, Name string
	Status        ResourceStatus
	// Sent is the state that the proxy was sent last, and Accepted the one that it accepted last
	// and works with: they are the same if Status is StatusSynced. Of load assignments in one
	// response, an Envoy may use a newer one that precedes a rejected one.
	Sent, Accepted StateOfResource
	// Error is the text of the NACK of a state, or "" if the proxy has accepted a state since. If
	// it rejected several resources together, and the invalid ones are not known yet, all have the
	// error.
	Error string
	// Since is when the unanswered state was sent (StatusStale), or since when the proxy accepts no
	// state (StatusError); otherwise zero.
	Since time.Time
	// LeftOut has the objects that are left out for this proxy (FaultLeftOut).
	LeftOut []Fault
	// Pending means that another state for the proxy, or its removal, was not sent yet.
	Pending bool
}

// ResourceStatus is the state of a resource at a proxy. The values are those of CSDS
// (envoy.service.status.v3.ConfigStatus).
type ResourceStatus string

// The values of ResourceStatus.
const (
	// StatusSynced means that the proxy has accepted the state.
	StatusSynced ResourceStatus = "SYNCED"
	// StatusNotSent means that the proxy was sent no state, because it has to wait, or because
	// there is none (Pending distinguishes them).
	StatusNotSent ResourceStatus = "NOT_SENT"
	// StatusStale means that the proxy has not answered.
	StatusStale ResourceStatus = "STALE"
	// StatusError means that the proxy has rejected the state.
	StatusError ResourceStatus = "ERROR"
)

// StateOfResource is one state of a resource. The zero value stands for none. It is comparable:
// equal values are the same state.
type StateOfResource struct{ resource *resource.State }

// Exists reports whether there is a state.
func (s StateOfResource) Exists() bool { return s.resource.IsPresent() }

// Version is the version of the resource, a hash of its content, as delta clients are sent it; ""
// if there is no state. SotW has versions of responses instead: see TypeStatus.
func (s StateOfResource) Version() string {
	if !s.Exists() {
		return ""
	}
	return resource.Version(s.resource.Hash)
}

// Made is when this server built the state; zero if there is none, or if another server built it.
func (s StateOfResource) Made() time.Time {
	if !s.Exists() || s.resource.Made == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.resource.Made)
}

// ErrNoState means that there is no state, or that a proxy has brought it from another server, so
// that its content is not known here.
var ErrNoState = errors.New("the content is not known")

// Message decodes the state, at the cost of decoding. The caller owns the message. Keys and other
// fields that Envoy marks as secret (the option udpa.annotations.sensitive) are replaced by
// "[redacted]", and so is content that cannot be decoded. The error is ErrNoState, wrapped, or the
// error of decoding.
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

// Resources returns the resources of the proxies whose streams are selected, one after the other,
// each in its state when it is yielded; nil selects all. Streams come in the order of their
// opening. A proxy that has several streams comes several times.
//
// It costs nothing while nobody calls it. It holds the lock that pushes need for the time that
// copying some pointers of one proxy takes; only the methods of StateOfResource decode anything. A
// proxy's list has only resources that the proxy itself was sent, or is to be sent.
func (s *Server) Resources(selected func(Stream) bool) iter.Seq[ProxyResources] {
	return func(yield func(ProxyResources) bool) {
		conns := s.cache.selected(nil)
		slices.SortFunc(conns, func(a, b *connection) int { return cmp.Compare(a.stream.about.Load().ID, b.stream.about.Load().ID) })
		for _, conn := range conns {
			if selected != nil && !selected(*conn.stream.about.Load()) {
				continue
			}
			var had []subscribed
			s.cache.locked(func() { had = conn.subscribed() })
			out := ProxyResources{Stream: *conn.stream.about.Load(), Node: conn.node}
			for _, h := range had {
				out.Resources = append(out.Resources, h.resources()...)
			}
			if !yield(out) {
				return
			}
		}
	}
}

// subscribed is the state of a subscription at one moment.
type subscribed struct {
	selectionState
	difference.Traits
	prepared   bool // false if there is no snapshot yet
	sent       *resource.Snapshot
	unanswered []acks.Response
	unaccepted map[string]sequence.Unaccepted
	faults     []Fault
}

// subscribed returns the state of the subscriptions of a connection. It is called with the cache's mutex held.
func (c *connection) subscribed() (out []subscribed) {
	for s := range c.all() {
		h := subscribed{sent: s.Has, unanswered: slices.Clone(s.Acks.Unanswered), unaccepted: maps.Clone(s.Unaccepted), faults: s.faults()}
		h.TypeURL = s.URL
		if s.selection != nil {
			h.Topics, h.Traits = s.selection.topics, c.Traits(&s.Type)
			if h.prepared = s.selection.snapshot != nil; h.prepared {
				h.Snapshot = s.Snapshot()
			}
		}
		out = append(out, h)
	}
	return out
}

// resources returns the state of each resource, by name.
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
	first := make(map[string]*acks.Response) // of the unanswered responses
	for i := range slices.Backward(h.unanswered) {
		for _, r := range h.unanswered[i].Listed {
			first[r.Name] = &h.unanswered[i]
		}
	}
	leftOut := make(map[string][]Fault)
	for _, f := range h.faults {
		if f.Status == FaultLeftOut {
			leftOut[f.Name] = append(leftOut[f.Name], f)
		}
	}
	for _, name := range slices.Compact(names) {
		r := h.resource(name, first[name])
		r.LeftOut = leftOut[name]
		out = append(out, r)
	}
	return out
}

// resource returns the state of a resource; unanswered is the first unanswered response that has
// it, or nil.
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

// stateOf returns the state of a resource, or none for a marker.
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
