// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"log/slog"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Server is an XDSUpdater that serves what it receives over ADS. The package
// comment says how it behaves.
type Server struct {
	discovery   registry.ServiceDiscovery
	generators  []namedGenerator
	provider    Provider // nil: none
	providing   part
	customizers customizers
	configs     func() ConfigReader
	proxyOf     func(context.Context, *core.Node) (*registry.Proxy, error)
	group       func(*core.Node, *registry.Proxy) any
	limits      Limits
	observer    Observer // nil: none
	logger      *slog.Logger
	pusher      *xdsupdate.Pusher
	cache       *cache

	running atomic.Bool
	wake    chan struct{} // holds one token if there are new views
	streams liveStreams
	turns   *turns
	// allowances are those of connections. large has the turns of large work that they
	// allow, excess those of work beyond them.
	allowances    allowances
	large, excess *turns

	reporters providers // those that have called the server
	warned    providers // those that were warned of because they have not

	// building makes pushes one at a time. It is no lock that a caller can
	// wait for: the discovery and the generators are called while it is held.
	building sync.Mutex
	built    bool         // the first push is done
	context  *PushContext // that of the last push
	// unsure: something has failed, and with the next push everything may have
	// changed. It is guarded by nothing.
	unsure atomic.Bool
}

var (
	_ xdsupdate.XDSUpdater           = (*Server)(nil)
	_ xdsupdate.EndpointDeltaUpdater = (*Server)(nil)
	_ xdsupdate.ShardClaimer         = (*Server)(nil)
	_ xdsupdate.BatchUpdater         = (*Server)(nil)
)

// New returns a server of the services of a discovery and of the endpoints that
// it is called with. The discovery is read when the server pushes, so that it may
// still be empty. If it is an xdsupdate.Attacher, as an aggregate.Controller is,
// the server becomes the updater of its registries. New panics if two generators
// have one name.
func New(services registry.ServiceDiscovery, opts ...Options) *Server {
	o := options.One("ads.New", opts)
	s := &Server{
		discovery: services, provider: o.Provider, configs: o.Configs,
		proxyOf: o.Proxy, group: o.Group, limits: o.Limits.withDefaults(), observer: o.Observer, logger: o.Logger,
		wake: make(chan struct{}, 1), turns: newTurns(o.LargeResponses), large: newWorkTurns(), excess: newWorkTurns(),
	}
	s.cache = newCache(len(o.Generators) > 0)
	names := make(map[string]struct{})
	for _, g := range o.Generators {
		name := g.Name()
		if _, again := names[name]; again {
			panic("ads: two generators have the name " + name)
		}
		names[name] = struct{}{}
		s.generators = append(s.generators, namedGenerator{g, part{partGenerator, name}})
	}
	s.customizers = o.Customizers
	if s.proxyOf == nil {
		s.proxyOf = s.knownProxy
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	s.logger = slog.New(safeHandler{s.logger.Handler()})
	pusher := o.Pusher
	if pusher.Logger == nil {
		pusher.Logger = s.logger
	}
	pusher.ProxyUpdate = s.proxyUpdate
	s.pusher = xdsupdate.NewPusher(s.push, pusher)
	if s.provider != nil {
		s.providing = part{partProvider, s.provider.Name()}
		s.provider.Attach(s)
	}
	if attacher, ok := registry.As[xdsupdate.Attacher](services); ok {
		attacher.AttachUpdater(s)
	}
	return s
}

// Register adds the aggregated discovery service, SotW and delta, to a gRPC
// server. Streams may come before Run; they are answered when Run has looked at
// the discovery for the first time.
func (s *Server) Register(server grpc.ServiceRegistrar) {
	discovery.RegisterAggregatedDiscoveryServiceServer(server, service{s})
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
	s.streams.stop()
	pusher.Wait()
}

// Flush pushes what the server received before the call, without delay, and
// returns when it has been handed to the streams that it concerns. Before Run,
// Flush itself does the work, so that hosts can do without. The error is the cause
// of ctx's end, wrapped, or that Run has ended. Generators must not call it.
func (s *Server) Flush(ctx context.Context) error { return s.pusher.Flush(ctx) }

// EndpointIndex returns the endpoints that the server received. It may be read,
// not written.
func (s *Server) EndpointIndex() *xdsupdate.EndpointIndex { return s.pusher.Index() }

// EDSUpdate implements xdsupdate.XDSUpdater.
func (s *Server) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	s.reporters.add(shard.Provider)
	s.pusher.EDSUpdate(shard, hostname, namespace, endpoints)
}

// EDSDeltaUpdate implements xdsupdate.EndpointDeltaUpdater.
func (s *Server) EDSDeltaUpdate(
	shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange,
) {
	s.reporters.add(shard.Provider)
	s.pusher.EDSDeltaUpdate(shard, hostname, namespace, changes)
}

// EDSCacheUpdate implements xdsupdate.XDSUpdater.
func (s *Server) EDSCacheUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	s.reporters.add(shard.Provider)
	s.pusher.EDSCacheUpdate(shard, hostname, namespace, endpoints)
}

// SvcUpdate implements xdsupdate.XDSUpdater.
func (s *Server) SvcUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	s.reporters.add(shard.Provider)
	s.pusher.SvcUpdate(shard, hostname, namespace, event)
}

// ConfigUpdate implements xdsupdate.XDSUpdater. A request without keys makes the
// server compare everything with the discovery; one with keys only the hosts
// that are named by keys of services.
func (s *Server) ConfigUpdate(req *xdsupdate.PushRequest) { s.pusher.ConfigUpdate(req) }

// UpdateBatch implements xdsupdate.BatchUpdater.
func (s *Server) UpdateBatch(publish func()) { s.pusher.UpdateBatch(publish) }

// Claim implements xdsupdate.ShardClaimer.
func (s *Server) Claim(shard xdsupdate.ShardKey) xdsupdate.ShardUpdater {
	s.reporters.add(shard.Provider)
	return s.pusher.Claim(shard)
}

// RemoveShard implements xdsupdate.XDSUpdater.
func (s *Server) RemoveShard(shard xdsupdate.ShardKey) { s.pusher.RemoveShard(shard) }

func (s *Server) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
