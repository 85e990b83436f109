// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"errors"
	"slices"
	"unique"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// errNoProxy ends a stream if Options.Proxy returns neither a proxy nor an error.
var errNoProxy = status.Error(codes.Unauthenticated, "the proxy is not known")

// enter identifies the client of a first request.
func (s *stream) enter(r *received) error {
	if r.Node == nil {
		r.Node = &core.Node{}
	}
	c, before := s.conn.cache, s.server.reviews.Load()
	c.locked(func() { s.conn.node = r.Node })
	err := s.identify()
	if err == nil && s.server.reviews.Load() != before {
		err = s.identify() // before the addresses of the client were known, any update may have been about it
	}
	if err != nil {
		return err
	}
	var owner any
	c.locked(func() { owner = s.owner() })
	if err := s.server.streams.identified(s, owner, s.server.limits); err != nil {
		return err
	}
	s.server.connected(s)
	return nil
}

// reidentify identifies the proxy again, and moves it to another view if necessary.
func (s *stream) reidentify() {
	s.endedBy(guard.Call(func() {
		if err := s.identify(); err != nil {
			s.server.refused(s, err)
			s.end(err)
		}
	}))
	s.server.reportFailures()
}

// identify calls Options.Proxy until there was no concurrent request to do so, and moves the
// connection to the resulting view. It does nothing if another goroutine does so.
func (s *stream) identify() error {
	c, asks := s.conn.cache, false
	c.locked(func() {
		s.conn.asking++
		asks = s.conn.asking == 1
	})
	if !asks {
		return nil
	}
	for {
		proxy, key, err := s.server.identityOf(s.grpc.Context(), s.conn.node)
		again := false
		var made []moved
		c.locked(func() {
			switch {
			case s.conn.closed:
				err = errStopping
			case err == nil: // otherwise the stream ends, and there is no other call
				again = s.conn.asking > 1
				s.conn.asking = 0
				if made = s.become(proxy, key, again); again {
					s.conn.asking = 1
				}
			}
		})
		if err != nil {
			return err
		}
		if again {
			continue
		}
		for _, m := range made {
			c.attach(m.to, m.from)
		}
		c.detach()
		return nil
	}
}

// identityOf calls Options.Proxy and Provider.Group for a node, and returns the proxy and its view.
func (s *Server) identityOf(ctx context.Context, node *core.Node) (proxy *registry.Proxy, key View, err error) {
	var refusal error
	failed := failure.Part{In: failure.InProxy}.Call(func() error {
		proxy, refusal = s.proxyOf(ctx, node)
		return nil
	})
	if failed == nil && refusal == nil && proxy != nil {
		failed = failure.Part{In: failure.InGroup}.Call(func() error {
			key = PlainView(proxy, ClientOf(node))
			key.group(s.grouping, node, proxy)
			return errors.Join(checkKey(key.Policy), checkKey(key.policies))
		})
	}
	switch {
	case failed != nil:
		s.cache.failures.Add(failed)
		return nil, key, errInternal
	case refusal != nil:
		return nil, key, refusal
	case proxy == nil:
		return nil, key, errNoProxy
	}
	return proxy, key, nil
}

// become sets the proxy of the stream's connection, and its view unless again is set, which means
// that the proxy will be identified again. It returns the results of move, and is called with the
// cache's mutex held.
func (s *stream) become(proxy *registry.Proxy, key View, again bool) []moved {
	c, conn := s.conn.cache, s.conn
	c.unlist(conn)
	conn.proxy = proxy
	c.list(conn)
	if again {
		return nil
	}
	c.conns[conn] = struct{}{}
	about := *s.about.Load()
	about.Node, about.View = conn.node.GetId(), key
	s.about.Store(&about)
	return c.move(conn, unique.Make(key))
}

// owner returns the client that an identified stream counts for: its identity, or else its allowance. It is called
// with the cache's mutex held.
func (s *stream) owner() any {
	if id := s.conn.proxy.Identity; id != "" {
		return id
	}
	return s.allowance
}

// moved is a selection that has to be attached, and its predecessor.
type moved struct{ to, from *selection }

// move moves a connection to a view. It returns the selections that have to be attached.
func (c *cache) move(conn *connection, to view) (made []moved) {
	if conn.view == to {
		return nil
	}
	conn.view, conn.GRPC = to, to.Value().Client == envoy.ForGRPC
	for s := range conn.all() {
		s.Acks.Moved()
		from := s.selection
		if from == nil {
			continue
		}
		n := names{selectionKey: from.selectionKey, topics: from.topics}
		n.view = to
		if next := c.subscribe(s, n); next != nil {
			made = append(made, moved{next, from})
		}
	}
	conn.flush()
	return made
}

// ReviewProxies identifies the connected proxies again that selected accepts, and updates their
// views; nil selects all. A program calls it when the results of Options.Proxy have
// changed. It returns when the proxies have been identified; a proxy that a concurrent call is
// identifying may be updated by that call later.
func (s *Server) ReviewProxies(selected func(ProxyStatus) bool) {
	s.reviews.Inc()
	for _, conn := range s.cache.selected(selected) {
		conn.stream.reidentify()
	}
}

// proxyUpdate is called after a ProxyUpdate.
func (s *Server) proxyUpdate(cluster registry.ClusterID, ip string) {
	s.reviews.Inc()
	var list []*connection
	s.cache.locked(func() { list = slices.Clone(s.cache.addresses[address{cluster, ipaddr.Canonical(ip)}]) })
	for _, conn := range list {
		conn.stream.reidentify()
	}
}
