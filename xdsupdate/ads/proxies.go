// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrRejected means that a proxy refused what it was sent.
var ErrRejected = errors.New("rejected by the proxy")

// ProxyStatus is what is known of one stream of a proxy.
type ProxyStatus struct {
	// ID is the node's.
	ID string
	// View is what the proxy can see.
	View View
	// IPAddresses are the proxy's own, as it says.
	IPAddresses []string
	// Delta: the stream is a delta stream.
	Delta bool
	// Types are the types that the proxy is subscribed to, by type URL.
	Types map[string]TypeStatus
}

// TypeStatus is the state of one type on one stream. Versions are those of the
// responses: version_info (SotW), system_version_info (delta).
type TypeStatus struct {
	// Wildcard: the subscription covers everything. Names is the number of
	// resources that are subscribed by name.
	Wildcard bool
	Names    int
	// Sent is the version last sent, Acked that last accepted; empty if none.
	Sent  string
	Acked string
	// Pending: there is something that the proxy has not been sent yet, or has
	// not answered.
	Pending bool
	// Rejected is the version that the proxy refused and Error what it said, if
	// that was its last answer.
	Rejected string
	Error    string
	// Rejections counts all refusals on this stream.
	Rejections int
}

// Proxies returns the connected proxies, one for each stream, sorted by ID.
func (s *Server) Proxies() []ProxyStatus {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	out := make([]ProxyStatus, 0, len(s.cache.conns))
	for conn := range s.cache.conns {
		out = append(out, conn.statusLocked())
	}
	slices.SortStableFunc(out, func(a, b ProxyStatus) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func (c *connection) statusLocked() ProxyStatus {
	p := ProxyStatus{
		ID: c.proxy.ID, View: c.view.View, IPAddresses: c.proxy.IPAddresses,
		Types: make(map[string]TypeStatus, len(c.order)),
	}
	for _, s := range c.order {
		p.Delta = p.Delta || s.watch.deltaTo != nil
		p.Types[s.typeURL] = s.statusLocked()
	}
	return p
}

func (s *subscription) statusLocked() TypeStatus {
	t := TypeStatus{
		Wildcard: s.wildcard, Names: s.names,
		Sent: s.acks.sentVersion, Acked: s.acks.ackedVersion,
		Pending:  s.acks.done < s.target(),
		Rejected: s.acks.nackVersion, Error: s.acks.nackError, Rejections: s.acks.nacks,
	}
	return t
}

// target is the number of the response after which the client has everything
// that it should have now.
func (s *subscription) target() uint64 {
	n := s.acks.pushed
	if len(s.pending) > 0 || s.owed {
		n++
	}
	if len(s.gone) > 0 {
		n++
	}
	return n
}

// WaitApplied flushes, and waits until every connected proxy that selected
// accepts has answered everything that it was to be sent then; nil selects all.
// Proxies that come later do not count, and those that leave count no more. If
// the last answer of a proxy is a refusal the error wraps ErrRejected and tells
// the proxy's ID, the type and what the proxy said. Otherwise an error is that
// of ctx, wrapped.
func (s *Server) WaitApplied(ctx context.Context, selected func(ProxyStatus) bool) error {
	if err := s.Flush(ctx); err != nil {
		return err
	}
	targets := s.cache.targets(selected)
	for {
		progress, err := s.cache.applied(targets)
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

// targets returns what selected proxies have to answer.
func (c *cache) targets(selected func(ProxyStatus) bool) map[*subscription]uint64 {
	c.mu.Lock()
	conns := make(map[*connection]ProxyStatus, len(c.conns))
	for conn := range c.conns {
		conns[conn] = conn.statusLocked()
	}
	c.mu.Unlock()
	if selected != nil {
		maps.DeleteFunc(conns, func(_ *connection, p ProxyStatus) bool { return !selected(p) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[*subscription]uint64)
	for conn := range conns {
		for _, s := range conn.order {
			out[s] = s.target()
		}
	}
	return out
}

// applied removes what is answered from targets. If anything is left it returns
// a channel that is closed when there is progress.
func (c *cache) applied(targets map[*subscription]uint64) (<-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := false
	var refusals []error
	for s, target := range targets {
		if _, live := c.conns[s.conn]; !live {
			continue
		}
		if s.acks.done < target && s.unanswered() {
			waiting = true
			continue
		}
		if s.acks.nackVersion != "" {
			refusals = append(refusals, fmt.Errorf(
				"%s: %s %s: %w: %s", s.conn.proxy.ID, s.typeURL, s.acks.nackVersion, ErrRejected, s.acks.nackError))
		}
	}
	if !waiting {
		slices.SortFunc(refusals, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, errors.Join(refusals...)
	}
	if c.progress == nil {
		c.progress = make(chan struct{})
	}
	return c.progress, nil
}

// unanswered reports whether the client has still something to get or to answer:
// what was pending may have turned out to be no change.
func (s *subscription) unanswered() bool {
	return len(s.acks.outstanding) > 0 || len(s.pending) > 0 || len(s.gone) > 0 || s.acks.pushed > s.acks.done
}
