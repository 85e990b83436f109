// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"fmt"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	xdscache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// maxTypes is how many types one stream can subscribe to: go-control-plane's
// response channels are made for so many.
const maxTypes = int(types.UnknownType)

// connection is one stream of one proxy. To go-control-plane, whose server runs
// the stream's protocol, it is the cache and the callbacks at once; there is one
// such server for each stream.
type connection struct {
	cache    *cache
	identify func(*core.Node) (*registry.Proxy, error)
	poke     func() // wakes Run: there is a new view
	report   func(error)
	end      func() // ends the stream
	entered  bool   // after the first request; only the stream's goroutine uses it

	// The rest is guarded by cache.mu.
	node          *core.Node
	proxy         *registry.Proxy // nil before the first request
	view          *view
	subscriptions map[string]*subscription
	order         []*subscription // in the order of sending
	// warming has the clusters that were sent anew before the client asked for
	// load assignments on this stream.
	warming map[string]struct{}
}

var (
	_ xdscache.ConfigWatcher = (*connection)(nil)
	_ sotw.Callbacks         = (*connection)(nil)
	_ delta.Callbacks        = (*connection)(nil)
)

// CreateWatch implements xdscache.ConfigWatcher.
func (c *connection) CreateWatch(
	req *discovery.DiscoveryRequest, sub xdscache.Subscription, to chan xdscache.Response,
) (func(), error) {
	return c.watch(req.GetNode(), req.GetTypeUrl(), func(s *subscription) {
		s.recover()
		s.acks.answered(req.GetResponseNonce(), req.GetErrorDetail())
		s.rename(req, sub)
		s.watch.sotw, s.watch.sotwTo = req, to
	})
}

// CreateDeltaWatch implements xdscache.ConfigWatcher.
func (c *connection) CreateDeltaWatch(
	req *discovery.DeltaDiscoveryRequest, sub xdscache.Subscription, to chan xdscache.DeltaResponse,
) (func(), error) {
	return c.watch(req.GetNode(), req.GetTypeUrl(), func(s *subscription) {
		s.acks.answered(req.GetResponseNonce(), req.GetErrorDetail())
		s.resubscribe(req, sub)
		s.watch.delta, s.watch.deltaTo = req, to
	})
}

// watch changes a subscription by a request and answers it, now or later.
func (c *connection) watch(node *core.Node, typeURL string, apply func(*subscription)) (func(), error) {
	var proxy *registry.Proxy
	if !c.entered {
		var err error
		if proxy, err = c.identify(node); err != nil {
			return nil, err
		}
	}
	c.cache.mu.Lock()
	if proxy != nil {
		c.entered = true
		c.enterLocked(node, proxy)
	}
	s, err := c.subscriptionLocked(typeURL)
	if err != nil {
		c.cache.mu.Unlock()
		return nil, err
	}
	apply(s)
	c.flushAndUnlock()
	return func() {
		c.cache.mu.Lock()
		defer c.cache.mu.Unlock()
		s.watch.close()
	}, nil
}

// flushAndUnlock sends what is pending, after it was encoded without the lock.
func (c *connection) flushAndUnlock() {
	fresh := !c.view.ready
	var unencoded []*resource
	if c.readyLocked() {
		unencoded = c.appendPendingLocked(nil)
	}
	c.cache.mu.Unlock()
	if fresh {
		c.poke()
	}
	encodeAll(unencoded, c.report)

	c.cache.mu.Lock()
	defer c.cache.mu.Unlock()
	c.flushLocked()
}

// appendPendingLocked appends the resources that the connection is about to be
// sent.
func (c *connection) appendPendingLocked(out []*resource) []*resource {
	for _, s := range c.order {
		if !s.watch.open() {
			continue
		}
		for name := range s.pending {
			if r := s.lookup(name); r != nil {
				out = append(out, r)
			}
		}
	}
	return out
}

func (c *connection) enterLocked(node *core.Node, proxy *registry.Proxy) {
	c.node, c.proxy = node, proxy
	c.view = c.cache.enterLocked(viewOf(node, proxy))
	c.cache.conns[c] = struct{}{}
}

func (c *connection) readyLocked() bool { return c.cache.ready && c.view != nil && c.view.ready }

func (c *connection) subscriptionLocked(typeURL string) (*subscription, error) {
	if s := c.subscriptions[typeURL]; s != nil {
		return s, nil
	}
	if len(c.subscriptions) >= maxTypes {
		return nil, status.Errorf(codes.ResourceExhausted, "more than %d resource types on one stream", maxTypes)
	}
	s := newSubscription(c, typeURL)
	c.subscriptions[typeURL] = s
	c.order = append(c.order, s)
	slices.SortFunc(c.order, func(a, b *subscription) int {
		if d := rank(a.typeURL) - rank(b.typeURL); d != 0 {
			return d
		}
		return strings.Compare(a.typeURL, b.typeURL)
	})
	return s, nil
}

// rank orders the types for make-before-break: nothing may point to what the
// client does not have yet (xDS protocol, "Eventual consistency considerations").
func rank(typeURL string) int {
	return 1 + slices.Index([]string{
		envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType,
	}, typeURL)
}

// flushLocked sends what is pending: first what is new or changed, clusters
// before the listeners and routes that may point to them, and then what is gone,
// in the opposite order.
func (c *connection) flushLocked() {
	if !c.readyLocked() {
		return
	}
	clusters := c.subscriptions[envoy.ClusterType]
	for _, s := range c.order {
		if clusters != nil && pointsToClusters(s.typeURL) && len(clusters.pending) > 0 {
			continue
		}
		s.updates()
	}
	unsettled := false
	for _, s := range slices.Backward(c.order) {
		if !pointsToClusters(s.typeURL) && unsettled && rank(s.typeURL) > 0 {
			continue
		}
		s.removals()
		unsettled = unsettled || pointsToClusters(s.typeURL) && len(s.pending)+len(s.gone) > 0
	}
	c.cache.progressedLocked()
}

func pointsToClusters(typeURL string) bool {
	return typeURL == envoy.ListenerType || typeURL == envoy.RouteType
}

// reenter asks who the proxy is, and changes what it can see.
func (c *connection) reenter() {
	c.cache.mu.Lock()
	node := c.node
	c.cache.mu.Unlock()
	proxy, err := c.identify(node)

	c.cache.mu.Lock()
	if _, live := c.cache.conns[c]; !live {
		c.cache.mu.Unlock()
		return
	}
	if err != nil {
		c.cache.mu.Unlock()
		c.report(err)
		c.end()
		return
	}
	c.proxy = proxy
	if now := viewOf(node, proxy); now != c.view.View {
		old := c.view
		c.view = c.cache.enterLocked(now)
		for _, s := range c.order {
			s.review()
		}
		c.cache.leaveLocked(old)
	}
	c.flushAndUnlock()
}

// close ends the connection.
func (c *connection) close() {
	c.cache.mu.Lock()
	defer c.cache.mu.Unlock()
	if c.view == nil {
		return
	}
	for _, s := range c.subscriptions {
		s.watch.close()
		c.cache.setWildcardLocked(s, false)
		for name, e := range s.entries {
			if e.named {
				c.cache.unsubscribeLocked(s, name)
			}
		}
	}
	delete(c.cache.conns, c)
	c.cache.leaveLocked(c.view)
	c.cache.progressedLocked()
}

// OnStreamOpen implements sotw.Callbacks.
func (*connection) OnStreamOpen(context.Context, int64, string) error { return nil }

// OnStreamClosed implements sotw.Callbacks.
func (*connection) OnStreamClosed(int64, *core.Node) {}

// OnStreamRequest implements sotw.Callbacks.
func (c *connection) OnStreamRequest(_ int64, req *discovery.DiscoveryRequest) error {
	return c.checkNode(req.GetNode())
}

// OnStreamResponse implements sotw.Callbacks: it learns the nonce.
func (c *connection) OnStreamResponse(
	_ context.Context, _ int64, _ *discovery.DiscoveryRequest, resp *discovery.DiscoveryResponse,
) {
	c.sent(resp.GetTypeUrl(), resp.GetNonce(), resp.GetVersionInfo())
}

// OnDeltaStreamOpen implements delta.Callbacks.
func (*connection) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

// OnDeltaStreamClosed implements delta.Callbacks.
func (*connection) OnDeltaStreamClosed(int64, *core.Node) {}

// OnStreamDeltaRequest implements delta.Callbacks.
func (c *connection) OnStreamDeltaRequest(_ int64, req *discovery.DeltaDiscoveryRequest) error {
	return c.checkNode(req.GetNode())
}

// OnStreamDeltaResponse implements delta.Callbacks: it learns the nonce.
func (c *connection) OnStreamDeltaResponse(
	_ int64, _ *discovery.DeltaDiscoveryRequest, resp *discovery.DeltaDiscoveryResponse,
) {
	c.sent(resp.GetTypeUrl(), resp.GetNonce(), resp.GetSystemVersionInfo())
}

// checkNode refuses a stream that changes its identity: what it was sent was
// chosen for the first one.
func (c *connection) checkNode(node *core.Node) error {
	if node == nil || !c.entered || node.GetId() == c.node.GetId() {
		return nil
	}
	return status.Error(codes.InvalidArgument, fmt.Sprintf("node id changed from %q to %q", c.node.GetId(), node.GetId()))
}

func (c *connection) sent(typeURL, nonce, version string) {
	c.cache.mu.Lock()
	defer c.cache.mu.Unlock()
	if s := c.subscriptions[typeURL]; s != nil {
		s.acks.sent(nonce, version)
	}
}
