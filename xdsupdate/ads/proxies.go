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

// ProxyStatus describes one stream of a proxy.
//
// Its JSON is for tools and people, not to be decoded into it: fields have the names of their tags,
// which are stable, and empty fields are omitted where the tag says so. For View see there.
type ProxyStatus struct {
	// ID is the ID of the node.
	ID string `json:"id"`
	// Stream is the ID of the stream, as in Stream.
	Stream uint64 `json:"stream,omitempty"`
	// View is the view of the proxy.
	View View `json:"view"`
	// IPAddresses are the addresses that the node reports.
	IPAddresses []string `json:"ip_addresses,omitempty"`
	// Delta means that the stream is a delta stream.
	Delta bool `json:"delta"`
	// Types are the types that the proxy is subscribed to, by type URL.
	Types map[string]TypeStatus `json:"types"`
}

// TypeStatus is the state of one type on one stream. Versions are versions of responses:
// version_info (SotW), system_version_info (delta).
type TypeStatus struct {
	// Wildcard means that the subscription covers everything. Names is the number of resources that
	// are subscribed by name.
	Wildcard bool `json:"wildcard"`
	Names    int  `json:"names"`
	// Sent is the version last sent, Acked the version last accepted; both may be empty.
	Sent  string `json:"sent"`
	Acked string `json:"acked"`
	// Pending means that a change was not sent yet, or not answered.
	Pending bool `json:"pending"`
	// Overdue means that a response has not been answered for longer than Options.PhaseTimeout.
	Overdue bool `json:"overdue,omitempty"`
	// Rejections counts the rejected responses on this stream.
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
		ID: c.proxy.ID, Stream: c.stream.about.Load().ID, View: c.view.Value(), IPAddresses: c.proxy.IPAddresses, Delta: c.Delta,
		Types: make(map[string]TypeStatus, len(c.Types)),
	}
	now := time.Now()
	for s := range c.all() {
		p.Types[s.URL] = TypeStatus{
			Wildcard: s.Scope() == sequence.Everything, Names: len(s.topics()),
			Sent: s.Acks.SentVersion, Acked: s.Acks.AckedVersion,
			Pending:    !s.applied(),
			Overdue:    c.Timeout > 0 && len(s.Acks.Unanswered) > 0 && c.Overdue(&s.Acks.Unanswered[0], now),
			Rejections: s.Acks.Refused,
		}
	}
	return p
}

// applied reports whether the client was sent everything and has answered.
func (s *subscription) applied() bool { return s.conn.Memory.Applied(&s.Type) }

// isClosed reports whether the client gets nothing because a provider does not know its resources.
func (s *subscription) isClosed() bool {
	in := s.selection
	return in != nil && in.snapshot == nil && !s.conn.cache.resolver(in.view).isOpen()
}

// WaitApplied flushes, and waits until every connected proxy that selected accepts has answered all
// responses that it was to be sent then; nil selects all. Later proxies do not count, nor do
// proxies that leave. If a proxy rejects resources, or resources of a proxy cannot be built, the error
// joins a *Fault for each. Any other error is that of Flush, or that of ctx, wrapped.
func (s *Server) WaitApplied(ctx context.Context, selected func(ProxyStatus) bool) error {
	if err := s.Flush(ctx); err != nil {
		return err
	}
	all, epoch := s.cache.targets(selected)
	isApplied := func(s *subscription) bool {
		return s.conn.closed || s.Acks.Applied >= epoch || s.applied() || s.isClosed()
	}
	var missing []*subscription // as long as one of them is not applied, the others need no check
	for {
		var progress <-chan struct{}
		var err error
		s.cache.locked(func() {
			if missing = slices.DeleteFunc(missing, isApplied); len(missing) == 0 {
				missing = slices.DeleteFunc(slices.Clone(all), isApplied)
			}
			if len(missing) > 0 {
				progress = s.cache.awaitProgress()
			} else {
				err = faultsOf(all)
			}
		})
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

// selected returns the connections of the selected proxies. It takes the lock.
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

// targets returns the subscriptions of selected proxies, and the epoch that they have to apply. It takes the lock.
func (c *cache) targets(selected func(ProxyStatus) bool) (out []*subscription, epoch uint64) {
	conns := c.selected(selected)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		out = slices.AppendSeq(out, conn.all())
	}
	return out, c.epoch
}

// faultsOf returns the faults of subscriptions, except for resources that are built without some part, sorted.
func faultsOf(list []*subscription) error {
	var out []error
	for _, s := range list {
		if s.conn.closed {
			continue
		}
		for _, f := range s.faults() {
			if f.Status != FaultBuiltWithout {
				out = append(out, &f)
			}
		}
	}
	slices.SortFunc(out, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(out...)
}
