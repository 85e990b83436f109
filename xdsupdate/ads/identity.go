// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"errors"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// identity is how a connection keeps up with who its proxy is. One goroutine at a
// time asks the program; a caller that comes meanwhile makes it ask again, so that what the
// connection ends up with was answered after the last call of ProxyUpdate. It is
// guarded by the cache's mutex.
type identity struct {
	asking bool
	again  bool
}

// errNoProxy ends a stream of which Options.Proxy neither knows who it is nor why not.
var errNoProxy = status.Error(codes.Unauthenticated, "the proxy is not known")

// enter learns who the client of a first request is.
func (s *stream) enter(r *received) error {
	if r.Node == nil {
		r.Node = &core.Node{}
	}
	c := s.conn.cache
	c.mu.Lock()
	s.conn.node, s.conn.asking = r.Node, true
	// Before its addresses are known, any ProxyUpdate may be about this proxy.
	seen := c.proxyUpdates
	c.mu.Unlock()
	if err := s.identify(func() bool { return seen != c.proxyUpdates }); err != nil {
		return err
	}
	if err := s.server.streams.identified(s, s.owner, s.server.limits.Streams); err != nil {
		return err
	}
	s.server.connected(s)
	return nil
}

// reidentify learns again who the proxy is, and changes what it can see.
func (s *stream) reidentify() {
	s.endedBy(guard.Call(func() {
		c, asks := s.conn.cache, false
		c.locked(func() {
			if s.conn.asking || s.conn.closed {
				s.conn.again = true
			} else {
				s.conn.asking, asks = true, true
			}
		})
		if !asks {
			return
		}
		if err := s.identify(func() bool { return false }); err != nil {
			s.server.refused(s, err)
			s.end(err)
		}
	}))
	s.server.reportFailures()
}

// identify asks the program who the proxy is until nothing came meanwhile, and gives
// it its view. once is asked after the first answer, under the lock.
func (s *stream) identify(once func() bool) error {
	c := s.conn.cache
	for first := true; ; first = false {
		proxy, key, err := s.server.identityOf(s.grpc.Context(), s.conn.node)
		again, fresh := false, false
		var made []moved
		c.locked(func() {
			switch {
			case s.conn.closed:
				err = errStopping()
			case err == nil: // otherwise the stream ends, so that the program is not asked again
				again = s.conn.again || first && once()
				if made, fresh, err = s.become(proxy, key, again); again {
					s.conn.again = false
				}
			}
		})
		if err != nil {
			return err
		}
		if again {
			continue
		}
		if fresh {
			s.server.poke()
		}
		for _, m := range made {
			c.attach(m.to, m.from)
		}
		c.detach()
		return nil
	}
}

// identityOf asks the program who a node is, and what it can see.
func (s *Server) identityOf(ctx context.Context, node *core.Node) (proxy *registry.Proxy, key View, err error) {
	internal := func(err error) error {
		if err == nil {
			return nil
		}
		s.cache.failures.Add(err)
		return errInternal()
	}
	var refusal error
	if err := internal(failure.Part{In: failure.InProxy}.Call(func() error {
		proxy, refusal = s.proxyOf(ctx, node)
		return nil
	})); err != nil {
		return nil, key, err
	}
	switch {
	case refusal != nil:
		return nil, key, refusal
	case proxy == nil:
		return nil, key, errNoProxy
	}
	return proxy, key, internal(failure.Part{In: failure.InGroup}.Call(func() error {
		key = s.viewOf(node, proxy)
		return errors.Join(checkKey(key.Group), checkKey(key.Policy), checkKey(key.policies))
	}))
}

// become gives the stream's connection its proxy and, unless it is asked again who that
// is, its view. It returns what move does, and is called with the cache's mutex held.
func (s *stream) become(proxy *registry.Proxy, key View, again bool) (made []moved, fresh bool, err error) {
	c, conn := s.conn.cache, s.conn
	c.unlist(conn)
	conn.proxy = proxy
	c.list(conn)
	if again {
		return nil, false, nil
	}
	if conn.asking = false; s.owner == nil {
		s.owner = s.allowance
		if proxy.Identity != "" {
			s.owner = proxy.Identity
		}
	}
	if err := c.admit(conn, s.server.limits.StreamsPerNode); err != nil {
		return nil, false, err
	}
	about := *s.about.Load()
	about.Node, about.View = conn.node.GetId(), key
	s.about.Store(&about)
	made, fresh = c.move(conn, key)
	return made, fresh, nil
}

// admit adds a connection that has an identity, unless its node has too many.
func (c *cache) admit(conn *connection, limit int) error {
	if _, known := c.conns[conn]; known {
		return nil
	}
	id := conn.node.GetId()
	if limit > 0 && c.nodes[id] >= limit {
		return exceeds(LimitStreamsPerNode, "more than %d streams of node %q", limit, id)
	}
	c.nodes[id]++
	c.conns[conn] = struct{}{}
	return nil
}

// moved is a selection that has to be attached, and the one before it.
type moved struct{ to, from *selection }

// move gives a connection a view. It returns the selections that have to be
// attached, and whether generators have to be called for the view.
func (c *cache) move(conn *connection, key View) (made []moved, fresh bool) {
	old := conn.view
	if old != nil && old.View == key {
		return nil, false
	}
	conn.view = c.enter(key)
	conn.GRPC = key.Client == envoy.ForGRPC
	for s := range conn.all() {
		s.Acks.Moved()
		from := s.selection
		if from == nil {
			continue
		}
		if to := c.subscribe(s, from.wildcard, names{topics: from.topics, sum: from.sum}); to != nil {
			made = append(made, moved{to, from})
		}
	}
	if old != nil {
		c.leave(old)
	}
	conn.flush()
	return made, !conn.view.ready
}

// checkNode refuses a stream that changes its identity: what it was sent was
// chosen for the first one.
func (s *stream) checkNode(node *core.Node) error {
	if node == nil || s.conn.node == nil || node.GetId() == s.conn.node.GetId() {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "node id changed from %q to %q", s.conn.node.GetId(), node.GetId())
}

// ReviewProxies asks again who the connected proxies are that selected accepts,
// and changes what they can see accordingly; nil selects all. A program calls it
// when what Options.Proxy or Options.Group answers has changed. It returns when
// that is done, or will be done by another call that is at it.
func (s *Server) ReviewProxies(selected func(ProxyStatus) bool) {
	s.cache.mu.Lock()
	s.cache.proxyUpdates++ // also for those that are connecting just now
	s.cache.mu.Unlock()
	for _, conn := range s.cache.selected(selected) {
		conn.stream.reidentify()
	}
}

// ProxyUpdate implements xdsupdate.XDSUpdater: it asks again who the nodes with
// that address are, and changes what they can see accordingly.
func (s *Server) ProxyUpdate(cluster registry.ClusterID, ip string) {
	s.pusher.ProxyUpdate(cluster, ip)
}

func (s *Server) proxyUpdate(cluster registry.ClusterID, ip string) {
	c := s.cache
	c.mu.Lock()
	c.proxyUpdates++
	list := append([]*connection(nil), c.addresses[address{cluster, ipaddr.Canonical(ip)}]...)
	c.mu.Unlock()
	for _, conn := range list {
		conn.stream.reidentify()
	}
}
