// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
)

// ErrRejected means that a proxy refused what it was sent.
var ErrRejected = errors.New("rejected by the proxy")

// ProxyStatus is what is known of one stream of a proxy.
//
// Its JSON is for tools and people to read, not to be read back into it: fields have the names
// of their tags, which stay, and what is empty is left out where the tag says so. Of View and
// LeftOut see there.
type ProxyStatus struct {
	// ID is the node's.
	ID string `json:"id"`
	// Stream is the ID of the stream, as in Stream.
	Stream uint64 `json:"stream,omitempty"`
	// View is what the proxy can see.
	View View `json:"view"`
	// IPAddresses are the proxy's own, as it says.
	IPAddresses []string `json:"ip_addresses,omitempty"`
	// Delta: the stream is a delta stream.
	Delta bool `json:"delta"`
	// Types are the types that the proxy is subscribed to, by type URL.
	Types map[string]TypeStatus `json:"types"`
}

// TypeStatus is the state of one type on one stream. Versions are those of the
// responses: version_info (SotW), system_version_info (delta).
type TypeStatus struct {
	// Wildcard: the subscription covers everything. Names is the number of
	// resources that are subscribed by name.
	Wildcard bool `json:"wildcard"`
	Names    int  `json:"names"`
	// Sent is the version last sent, Acked that last accepted; empty if none.
	Sent  string `json:"sent"`
	Acked string `json:"acked"`
	// Pending: there is something that the proxy has not been sent yet, or has
	// not answered.
	Pending bool `json:"pending"`
	// Overdue: it has not answered a response for longer than Options.PhaseTimeout.
	Overdue bool `json:"overdue,omitempty"`
	// Refusals are the resources that the proxy refuses at present, sorted by name.
	// Rejected and Error are the version and the text of the one that came last.
	Refusals []Refusal `json:"refusals,omitempty"`
	Rejected string    `json:"rejected,omitempty"`
	Error    string    `json:"error,omitempty"`
	// Failed are the resources that are not as they should be on the side of the server,
	// sorted by name.
	Failed []Failure `json:"failed,omitempty"`
	// Rejections counts the responses that were refused on this stream.
	Rejections int `json:"rejections,omitempty"`
}

// Proxies returns the connected proxies, one for each stream, sorted by ID, then by Stream.
func (s *Server) Proxies() []ProxyStatus {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]ProxyStatus, 0, len(c.conns))
	for conn := range c.conns {
		out = append(out, conn.status())
	}
	slices.SortFunc(out, func(a, b ProxyStatus) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Stream, b.Stream))
	})
	return out
}

func (c *connection) status() ProxyStatus {
	p := ProxyStatus{
		ID: c.proxy.ID, Stream: c.stream.about.Load().ID, View: c.view.View, IPAddresses: c.proxy.IPAddresses, Delta: c.Delta,
		Types: make(map[string]TypeStatus, len(c.Types)),
	}
	now := time.Now()
	for s := range c.all() {
		refusals := s.standing()
		last := latest(refusals)
		p.Types[s.URL] = TypeStatus{
			Wildcard: s.Scope() == sequence.Everything, Names: len(s.topics()),
			Sent: s.Acks.SentVersion, Acked: s.Acks.AckedVersion,
			Pending:  !s.applied(),
			Overdue:  c.Timeout > 0 && len(s.Acks.Unanswered) > 0 && c.Overdue(&s.Acks.Unanswered[0], now),
			Failed:   s.failed(),
			Refusals: refusals, Rejected: last.Version, Error: last.Error, Rejections: s.Acks.Refused,
		}
	}
	return p
}

// applied reports whether the client was sent everything and has answered it.
func (s *subscription) applied() bool { return s.conn.Applied(&s.Type) }

// WaitApplied flushes, and waits until every connected proxy that selected
// accepts has answered everything that it was to be sent then; nil selects all.
// Proxies that come later do not count, and those that leave count no more. If
// a proxy refuses resources the error wraps ErrRejected and has
// the proxy's ID, the type, the resource and what the proxy said, for each. If a
// resource of its cannot be made the error wraps ErrNotUpdated, and has the proxy's view, too. Otherwise an
// error is that of
// Flush, or that of ctx, wrapped.
func (s *Server) WaitApplied(ctx context.Context, selected func(ProxyStatus) bool) error {
	if err := s.Flush(ctx); err != nil {
		return err
	}
	w := &waitingFor{all: s.cache.targets(selected)}
	for {
		progress, err := s.cache.applied(w)
		if progress == nil {
			return err
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return fmt.Errorf("wait for proxies: %w", ctx.Err())
		}
	}
}

// selected returns connections of proxies. It takes the lock.
func (c *cache) selected(selected func(ProxyStatus) bool) (out []*connection) {
	var statuses []ProxyStatus
	c.locked(func() {
		out = make([]*connection, 0, len(c.conns))
		for conn := range c.conns {
			out = append(out, conn)
			if selected != nil {
				statuses = append(statuses, conn.status())
			}
		}
	})
	if selected == nil {
		return out
	}
	kept := out[:0]
	for i, conn := range out {
		if selected(statuses[i]) {
			kept = append(kept, conn)
		}
	}
	return kept
}

// target is an epoch that a subscription has to apply.
type target struct {
	of    *subscription
	epoch uint64
}

// missed reports whether it is not applied. A connection that is closed has applied all.
func (t *target) missed() bool {
	s := t.of
	return !s.conn.closed && s.Acks.Applied < t.epoch && !s.applied()
}

// waitingFor are targets that somebody waits for.
type waitingFor struct {
	all []target
	// missing are those that were not applied when all were looked at last: as long as one
	// of them is not, the others need not be looked at.
	missing []target
}

// targets returns the epoch that the subscriptions of selected proxies have to
// apply. It takes the lock.
func (c *cache) targets(selected func(ProxyStatus) bool) (out []target) {
	conns := c.selected(selected)
	c.mu.Lock()
	defer c.mu.Unlock()
	out = make([]target, 0, len(conns))
	for _, conn := range conns {
		for s := range conn.all() {
			out = append(out, target{s, c.epoch})
		}
	}
	return out
}

// applied returns nil, and what proxies have refused, when all targets are
// applied, and else a channel that is closed when there is progress. It takes the
// lock.
func (c *cache) applied(w *waitingFor) (<-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	applied := func(t target) bool { return !t.missed() }
	if w.missing = slices.DeleteFunc(w.missing, applied); len(w.missing) == 0 {
		w.missing = slices.DeleteFunc(slices.Clone(w.all), applied)
	}
	if len(w.missing) == 0 {
		return nil, refusalsOf(w.all)
	}
	return c.awaitProgress(), nil
}

// refusalsOf returns what proxies refuse of targets, and what is not updated, sorted.
func refusalsOf(targets []target) error {
	var refusals []error
	for _, t := range targets {
		if t.of.conn.closed {
			continue
		}
		refusals = append(refusals, t.of.notUpdated()...)
		for _, r := range t.of.standing() {
			refusals = append(refusals, r.errors(t.of.conn.proxy.ID, t.of.URL)...)
		}
	}
	slices.SortFunc(refusals, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(refusals...)
}
