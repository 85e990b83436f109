// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/config"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/registry"
)

// service is the discovery service; it keeps its methods out of Server's.
type service struct{ server *Server }

// StreamAggregatedResources serves SotW.
func (a service) StreamAggregatedResources(
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	return a.server.serve(stream.Context(), func(ctx context.Context, c *connection) error {
		return sotw.NewServer(ctx, c, c, sotw.WithOrderedADS(), noLegacyWildcards()).StreamHandler(stream, resourcev3.AnyType)
	})
}

// DeltaAggregatedResources serves delta.
func (a service) DeltaAggregatedResources(
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer,
) error {
	return a.server.serve(stream.Context(), func(ctx context.Context, c *connection) error {
		return delta.NewServer(ctx, c, c, noLegacyWildcards()).DeltaStreamHandler(stream, resourcev3.AnyType)
	})
}

// noLegacyWildcards: an empty request means everything for clusters and
// listeners only (xDS protocol, "How the client specifies what resources to
// return").
func noLegacyWildcards() config.XDSOption {
	return config.DeactivateLegacyWildcardForTypes([]string{
		resourcev3.EndpointType, resourcev3.RouteType, resourcev3.ScopedRouteType, resourcev3.VirtualHostType,
		resourcev3.SecretType, resourcev3.RuntimeType, resourcev3.ExtensionConfigType,
	})
}

// serve runs a stream until it ends or the server stops.
func (s *Server) serve(ctx context.Context, run func(context.Context, *connection) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &connection{
		cache: s.cache, poke: s.poke, report: s.report, end: cancel,
		identify:      func(node *core.Node) (*registry.Proxy, error) { return s.proxyOf(ctx, node) },
		subscriptions: make(map[string]*subscription),
	}
	if !s.streams.add(c) {
		return errStopping()
	}
	err := run(ctx, c)
	c.close()
	if s.streams.remove(c) {
		return errStopping()
	}
	return err
}

func errStopping() error { return status.Error(codes.Unavailable, "the server is stopping") }

// liveStreams are the streams to be ended when the server stops.
type liveStreams struct {
	mu      sync.Mutex
	stopped bool
	live    map[*connection]struct{}
}

// add returns false if the server has stopped.
func (l *liveStreams) add(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		l.live = make(map[*connection]struct{})
	}
	if !l.stopped {
		l.live[c] = struct{}{}
	}
	return !l.stopped
}

// remove reports whether the server has stopped.
func (l *liveStreams) remove(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, c)
	return l.stopped
}

func (l *liveStreams) stop() {
	l.mu.Lock()
	l.stopped = true
	live := l.live
	l.live = nil
	l.mu.Unlock()
	for c := range live {
		c.end()
	}
}
