// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/internal/loglimit"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/pace"
)

// Server is an XDSUpdater that serves what it receives over ADS. The package
// comment says how it behaves.
type Server struct {
	generators []namedGenerator
	providers  []namedProvider // own, those of the program's, services
	own        ownResources
	services   *servicesProvider
	grouping   []Provider // those of the program's
	configs    func() ConfigReader
	proxyOf    func(context.Context, *core.Node) (*registry.Proxy, error)
	group      func(*core.Node, *registry.Proxy) any
	limits     Limits
	observer   Observer // nil: none
	logger     *slog.Logger
	// refusals are the streams that are refused.
	refusals loglimit.Limiter
	pusher   *xdsupdate.Pusher
	cache    *cache

	running atomic.Bool
	wake    chan struct{} // holds one token if there are new views
	streams liveStreams
	turns   *pace.Turns
	// allowances are those of connections. large has the turns of large work that they
	// allow, excess those of work beyond them.
	allowances    pace.Allowances
	large, excess *pace.Turns

	// building makes pushes one at a time. It is no lock that a caller can
	// wait for: the discovery and the generators are called while it is held.
	building sync.Mutex
	built    bool         // the first push is done
	context  *PushContext // that of the last push
	moment   *moment      // that of the push that is running
	// idle: it was said that Run has not been called.
	idle atomic.Bool
	// unsure: something has failed, and with the next push everything may have
	// changed. It is guarded by nothing.
	unsure atomic.Bool
}

var (
	_ xdsupdate.XDSUpdater           = (*Server)(nil)
	_ xdsupdate.EndpointDeltaUpdater = (*Server)(nil)
	_ xdsupdate.BatchUpdater         = (*Server)(nil)
)

// attacher is a discovery that consists of registries, to which it hands updaters.
type attacher interface {
	AttachUpdater(updater xdsupdate.XDSUpdater)
}

// New returns a server of the services of a discovery and of the endpoints that
// it is called with; nil: there are none, and the server has what generators, a provider
// and SetResource give it. The discovery is read when the server pushes, so that it may
// still be empty. If it is, or wraps, an aggregate.Controller, or has its method
// AttachUpdater, the server becomes an updater of its registries, so that a host
// cannot forget to connect the two ends. New panics, with a text that says what is wrong, if
// there are two Options, if the discovery is a nil pointer, and if a generator or a provider
// is nil or has the name of another.
func New(services registry.ServiceDiscovery, opts ...Options) *Server {
	o := options.One("ads.New", opts)
	s := &Server{
		configs: o.Configs, grouping: slices.Clone(o.Providers),
		proxyOf: o.Proxy, group: o.Group, limits: o.Limits.withDefaults(), observer: o.Observer, logger: o.Logger,
		wake: make(chan struct{}, 1), turns: pace.NewTurns(o.LargeResponses), large: newWorkTurns(), excess: newWorkTurns(),
	}
	s.cache = newCache(len(o.Generators) > 0)
	checkDiscovery(services)
	s.cache.phaseTimeout = max(0, cmp.Or(o.PhaseTimeout, defaultPhaseTimeout))
	s.cache.removalDelay = max(0, o.RemovalDelay)
	s.cache.maxTypes = s.limits.Types
	s.generators = newGenerators(o.Generators)
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
	pusher.ProxyUpdate, pusher.Capture = s.proxyUpdate, s.capture
	s.pusher = xdsupdate.NewPusher(s.push, pusher)
	s.services = newServicesProvider(services, o.Services, s.cache.failures, s.pusher.Index(), s.logger)
	s.providers = newProviders(&s.own, s.grouping, s.services)
	if registries, ok := registry.As[attacher](s.services.discovery); ok {
		registries.AttachUpdater(s)
	}
	for _, p := range s.grouping {
		p.Attach(s)
	}
	return s
}

// checkDiscovery panics for a nil pointer, which is not the nil that New allows: it would
// fail at the first call of it, in the code of its type.
func checkDiscovery(services registry.ServiceDiscovery) {
	if v := reflect.ValueOf(services); v.Kind() == reflect.Pointer && v.IsNil() {
		panic(fmt.Sprintf("ads.New: the discovery is a nil %T: pass one that was made, or nil itself for a server without services", services))
	}
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
	s.pusher.ConfigUpdate(everything()) // it is pushed at once
	var pusher sync.WaitGroup
	pusher.Go(func() { s.pusher.Run(stop) })
	for open := true; open; {
		select {
		case <-s.wake:
			s.initNewViews()
		case <-stop:
			open = false
		}
	}
	s.streams.stop()
	pusher.Wait()
}

// warnIdle says once that a client has connected to a server that is not running.
func (s *Server) warnIdle() {
	if !s.running.Load() && !s.idle.Swap(true) {
		s.logger.Warn("a client has connected and Run has not been called: clients are sent nothing before Run or Flush")
	}
}

// Flush pushes what the server received before the call, without delay, and
// returns when it has been handed to the streams that it concerns. Before Run,
// Flush itself does the work, so that programs can do without. The error is the cause
// of ctx's end, wrapped, or that Run has ended. Generators must not call it.
//
// That clusters stay empty because a registry was not given the server as its updater is no
// error of Flush, which cannot tell it from one whose first report is still to come:
// CheckRegistries says so.
func (s *Server) Flush(ctx context.Context) error { return s.pusher.Flush(ctx) }

// EndpointIndex returns the endpoints that the server received. It may be read,
// not written.
func (s *Server) EndpointIndex() *xdsupdate.EndpointIndex { return s.pusher.Index() }

// EDSUpdate implements xdsupdate.XDSUpdater.
func (s *Server) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	s.pusher.EDSUpdate(shard, hostname, namespace, endpoints)
}

// EDSDeltaUpdate implements xdsupdate.EndpointDeltaUpdater.
func (s *Server) EDSDeltaUpdate(
	shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange,
) {
	s.pusher.EDSDeltaUpdate(shard, hostname, namespace, changes)
}

// EDSCacheUpdate implements xdsupdate.XDSUpdater.
func (s *Server) EDSCacheUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	s.pusher.EDSCacheUpdate(shard, hostname, namespace, endpoints)
}

// SvcUpdate implements xdsupdate.XDSUpdater.
func (s *Server) SvcUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	s.pusher.SvcUpdate(shard, hostname, namespace, event)
}

// ConfigUpdate implements xdsupdate.XDSUpdater. A request without keys makes the
// server compare everything with the discovery; one with keys only the hosts
// that are named by keys of services.
func (s *Server) ConfigUpdate(req *xdsupdate.PushRequest) { s.pusher.ConfigUpdate(req) }

// UpdateBatch implements xdsupdate.BatchUpdater.
func (s *Server) UpdateBatch(publish func(xdsupdate.XDSUpdater)) { s.pusher.UpdateBatch(publish) }

// Unwrap returns the Pusher of the server, for xdsupdate.As: updates of writers and of registries
// go to it.
func (s *Server) Unwrap() xdsupdate.XDSUpdater { return s.pusher }

// RemoveShard implements xdsupdate.XDSUpdater.
func (s *Server) RemoveShard(shard xdsupdate.ShardKey) { s.pusher.RemoveShard(shard) }

func (s *Server) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
