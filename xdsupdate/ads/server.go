// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"log/slog"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/config"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Server is an XDSUpdater that serves what it is told over ADS. The package
// comment says how it behaves.
type Server struct {
	discovery  registry.ServiceDiscovery
	generators map[string]Generator
	proxyOf    func(*core.Node) *registry.Proxy
	logger     *slog.Logger
	pusher     *xdsupdate.Pusher
	cache      *cache

	running atomic.Bool
	wake    chan struct{} // holds one token if there are new views
	stopped chan struct{} // closed when Run ends

	// building makes pushes one at a time. It is no lock that anybody else can
	// wait for: the discovery and the generators are asked while it is held.
	building sync.Mutex
	built    bool // the first push is done
}

var (
	_ xdsupdate.XDSUpdater           = (*Server)(nil)
	_ xdsupdate.EndpointDeltaUpdater = (*Server)(nil)
	_ xdsupdate.ShardClaimer         = (*Server)(nil)
)

// New returns a server of the services of a discovery and of the endpoints that
// it will be told. The discovery is read when the server pushes, so that it may
// still be empty.
func New(services registry.ServiceDiscovery, options Options) *Server {
	s := &Server{
		discovery:  services,
		generators: options.Generators,
		proxyOf:    options.Proxy,
		logger:     options.Logger,
		cache:      newCache(len(options.Generators) > 0),
		wake:       make(chan struct{}, 1),
		stopped:    make(chan struct{}),
	}
	if s.proxyOf == nil {
		s.proxyOf = ProxyOf
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	pusher := options.Pusher
	pusher.ProxyUpdate = s.proxyUpdate
	s.pusher = xdsupdate.NewPusher(s.push, pusher)
	return s
}

// Register adds the aggregated discovery service, SotW and delta, to a gRPC
// server. Streams may come before Run; they are answered when Run has looked at
// the discovery for the first time.
func (s *Server) Register(server grpc.ServiceRegistrar) {
	discovery.RegisterAggregatedDiscoveryServiceServer(server, streams{s})
}

// Run pushes until stop is closed, then ends all streams with the status
// Unavailable, and returns when everything that it started has ended. Call it
// when the discovery has synced: what the discovery has then is the first state
// that clients are sent. A second call panics.
func (s *Server) Run(stop <-chan struct{}) {
	if s.running.Swap(true) {
		panic("ads: Run called twice")
	}
	s.push(everything())
	var pusher sync.WaitGroup
	pusher.Go(func() { s.pusher.Run(stop) })
	for open := true; open; {
		select {
		case <-s.wake:
			s.greet()
		case <-stop:
			open = false
		}
	}
	close(s.stopped)
	pusher.Wait()
}

// Flush pushes what the server was told before the call, without delay, and
// returns when it has been handed to the streams that it concerns. Where Run is
// not running, Flush itself does the work, so that hosts can do without. The
// error is that of ctx, wrapped. Generators must not call it.
func (s *Server) Flush(ctx context.Context) error { return s.pusher.Flush(ctx) }

// EndpointIndex returns the endpoints that the server was told. It may be read,
// not written.
func (s *Server) EndpointIndex() *xdsupdate.EndpointIndex { return s.pusher.Index() }

// EDSUpdate implements xdsupdate.XDSUpdater.
func (s *Server) EDSUpdate(shard xdsupdate.ShardKey, hostname, namespace string, endpoints []*registry.Endpoint) {
	s.pusher.EDSUpdate(shard, hostname, namespace, endpoints)
}

// EDSDeltaUpdate implements xdsupdate.EndpointDeltaUpdater.
func (s *Server) EDSDeltaUpdate(
	shard xdsupdate.ShardKey, hostname, namespace string, changes []xdsupdate.EndpointChange,
) {
	s.pusher.EDSDeltaUpdate(shard, hostname, namespace, changes)
}

// EDSCacheUpdate implements xdsupdate.XDSUpdater.
func (s *Server) EDSCacheUpdate(shard xdsupdate.ShardKey, hostname, namespace string, endpoints []*registry.Endpoint) {
	s.pusher.EDSCacheUpdate(shard, hostname, namespace, endpoints)
}

// SvcUpdate implements xdsupdate.XDSUpdater.
func (s *Server) SvcUpdate(shard xdsupdate.ShardKey, hostname, namespace string, event registry.Event) {
	s.pusher.SvcUpdate(shard, hostname, namespace, event)
}

// ConfigUpdate implements xdsupdate.XDSUpdater. A request without keys makes the
// server compare everything with the discovery; one with keys only the hosts
// that are named by keys of services.
func (s *Server) ConfigUpdate(req *xdsupdate.PushRequest) { s.pusher.ConfigUpdate(req) }

// ProxyUpdate implements xdsupdate.XDSUpdater: it asks again who the nodes with
// that address are, and changes what they can see accordingly.
func (s *Server) ProxyUpdate(cluster registry.ClusterID, ip string) {
	s.pusher.ProxyUpdate(cluster, ip)
}

func (s *Server) proxyUpdate(cluster registry.ClusterID, ip string) {
	for _, conn := range s.cache.find(cluster, ip) {
		conn.reenter()
	}
}

// Claim implements xdsupdate.ShardClaimer.
func (s *Server) Claim(shard xdsupdate.ShardKey) xdsupdate.ShardUpdater { return s.pusher.Claim(shard) }

// RemoveShard implements xdsupdate.XDSUpdater.
func (s *Server) RemoveShard(shard xdsupdate.ShardKey) { s.pusher.RemoveShard(shard) }

func (s *Server) report(err error) {
	s.logger.Warn("resource left out", slog.Any("error", err))
}

// streams is the discovery service; it keeps its methods out of Server's.
type streams struct{ server *Server }

// StreamAggregatedResources serves SotW.
func (a streams) StreamAggregatedResources(
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	return a.server.serve(stream.Context(), func(ctx context.Context, c *connection) error {
		return sotw.NewServer(ctx, c, c, sotw.WithOrderedADS(), noLegacyWildcards()).StreamHandler(stream, resourcev3.AnyType)
	})
}

// DeltaAggregatedResources serves delta.
func (a streams) DeltaAggregatedResources(
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
	ended := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-s.stopped:
			cancel()
		case <-ended:
		}
	})
	c := &connection{
		cache: s.cache, identify: s.proxyOf, poke: s.poke, report: s.report,
		subscriptions: make(map[string]*subscription),
	}
	err := run(ctx, c)
	c.close()
	close(ended)
	watcher.Wait()
	select {
	case <-s.stopped:
		return status.Error(codes.Unavailable, "server is stopping")
	default:
		return err
	}
}

func (s *Server) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
