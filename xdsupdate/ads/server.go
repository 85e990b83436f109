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
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/internal/loglimit"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/pace"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
)

// updater receives the changes of registries.
type updater interface {
	xdsupdate.XDSUpdater
	xdsupdate.EndpointDeltaUpdater
	xdsupdate.BatchUpdater
}

// Server is an XDSUpdater that serves the reported state over ADS. See the package comment. It implements
// xdsupdate.XDSUpdater, xdsupdate.EndpointDeltaUpdater and xdsupdate.BatchUpdater. ConfigUpdate compares hosts
// with the discovery: all hosts if the request has no keys, else the hosts of its service keys. ProxyUpdate
// identifies the nodes with that address again, and updates their views.
type Server struct {
	updater                   // pusher
	providers []namedProvider // own resources, Options.Providers, services
	own       ownResources
	services  *servicesProvider
	grouping  []Provider // Options.Providers
	proxyOf   func(context.Context, *core.Node) (*registry.Proxy, error)
	limits    Limits
	// phaseTimeout and removalDelay are Options.PhaseTimeout and Options.RemovalDelay.
	phaseTimeout, removalDelay time.Duration
	observer                   Observer // may be nil
	logger                     *slog.Logger
	// refusals limits the log of rejected streams.
	refusals loglimit.Limiter
	pusher   *xdsupdate.Pusher
	cache    *cache

	running atomic.Bool
	streams liveStreams
	turns   *pace.Turns
	// allowances are the allowances of connections. large has the turns of large work within them,
	// excess the turns of work beyond them.
	allowances    pace.Allowances
	large, excess *pace.Turns

	// building makes pushes one at a time. The discovery and the providers are called while it is
	// held, so no method that the program calls may wait for it.
	building sync.Mutex
	moment   *moment // of the present push
	// idle means that a client has connected before Run was called.
	idle atomic.Bool
	// reviews counts the calls of ProxyUpdate and ReviewProxies.
	reviews atomic.Uint64
	// unsure means that a call has failed, so that everything may have changed with the next push.
	unsure atomic.Bool
}

// attacher is a discovery that consists of registries, and hands updaters to them.
type attacher interface {
	AttachUpdater(updater xdsupdate.XDSUpdater)
}

// New returns a server of the services of a discovery and of the reported endpoints. The discovery
// may be nil: then the server has only the resources of providers and SetResource. The
// discovery is read by each push, so it may still be empty. If it is, or wraps, an
// aggregate.Controller, or another type with the method AttachUpdater, the server becomes an
// updater of its registries, so that a host cannot forget to connect the two ends. New panics, with
// a text that names the cause, if there are two Options, if the discovery is a nil pointer, if the
// aggregate.Controller has made a registry already, and if a provider is nil or has the name of another.
func New(discovery registry.ServiceDiscovery, opts ...Options) *Server {
	o := options.One("ads.New", opts)
	s := &Server{
		grouping: slices.Clone(o.Providers),
		proxyOf:  o.Proxy, limits: o.Limits.withDefaults(), observer: o.Observer, logger: o.Logger,
		phaseTimeout: max(0, cmp.Or(o.PhaseTimeout, defaultPhaseTimeout)), removalDelay: max(0, o.RemovalDelay),
		turns: pace.NewTurns(o.LargeResponses), large: newWorkTurns(), excess: newWorkTurns(),
	}
	s.cache = newCache()
	if v := reflect.ValueOf(discovery); v.Kind() == reflect.Pointer && v.IsNil() { // it would fail at its first call
		panic(fmt.Sprintf("ads.New: the discovery is a nil %T: pass one that was made, or nil itself for a server without services", discovery))
	}
	if s.proxyOf == nil {
		s.proxyOf = s.knownProxy
	}
	s.logger = slog.New(safeHandler{cmp.Or(s.logger, slog.New(slog.DiscardHandler)).Handler()})
	s.pusher = xdsupdate.NewPusher(s.push, xdsupdate.PusherOptions{
		Logger: s.logger, Debounce: o.Debounce, Capture: s.capture, ProxyUpdate: s.proxyUpdate,
	})
	s.updater = s.pusher
	s.services = &servicesProvider{
		Builder: services.NewBuilder(discovery, s.cache.failures, s.pusher.Index(), s.logger), discovery: discovery,
	}
	s.providers = newProviders(&s.own, s.grouping, s.services)
	if registries, ok := registry.As[attacher](discovery); ok {
		registries.AttachUpdater(s)
	}
	for _, p := range s.grouping {
		p.Attach(s)
	}
	return s
}

// Register adds the aggregated discovery service, SotW and delta, to a gRPC server. Streams may
// come before Run; their first response follows the first push.
func (s *Server) Register(server grpc.ServiceRegistrar) {
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, service{s})
}

// Run pushes until stop is closed, then ends all streams with the status Unavailable, and returns
// when everything that it started has ended. Call it when the discovery has synced: the state of
// the discovery at that time is the first state that clients are sent. A second call panics.
func (s *Server) Run(stop <-chan struct{}) {
	if s.running.Swap(true) {
		panic("ads: Run called twice")
	}
	s.pusher.ConfigUpdate(everything()) // it is pushed at once
	var pusher sync.WaitGroup
	pusher.Go(func() { s.pusher.Run(stop) })
	<-stop
	s.streams.stop()
	pusher.Wait()
}

// runWithin is how long after the first client Run or Flush has to be called.
const runWithin = 5 * time.Second

// warnIdle warns, once, about clients of a server that is not running. It waits, because programs
// call Run on a goroutine, which a client may be ahead of.
func (s *Server) warnIdle() {
	if s.running.Load() || s.idle.Swap(true) {
		return
	}
	time.AfterFunc(runWithin, func() {
		ready := false
		if s.cache.locked(func() { ready = s.cache.layers != nil }); !s.running.Load() && !ready {
			s.logger.Warn("a client has connected and Run has not been called: clients are sent nothing before Run or Flush")
		}
	})
}

// Flush pushes all changes that the server received before the call, without delay, and returns
// when the responses have been handed to the streams. Before Run, Flush itself does the work, so
// that programs can do without Run. The error is the cause of ctx's end, wrapped, or that Run has
// ended. Providers must not call it.
//
// Flush returns no error if clusters stay empty because a registry does not have the server as its
// updater, because it cannot distinguish this from a registry whose first report is still to come:
// CheckRegistries does.
func (s *Server) Flush(ctx context.Context) error { return s.pusher.Flush(ctx) }

// EndpointIndex returns the index of the reported endpoints. It must only be read.
func (s *Server) EndpointIndex() *xdsupdate.EndpointIndex { return s.pusher.Index() }

// Unwrap returns the Pusher of the server, for xdsupdate.As: updates of writers and of registries
// go to it.
func (s *Server) Unwrap() xdsupdate.XDSUpdater { return s.pusher }

// Options for New. The zero value works.
type Options struct {
	// Logger gets messages about problems that an operator can fix, such as endpoints and ports
	// that are left out because Envoy would reject others with them, and registries that have
	// services but never call the server (CheckRegistries returns them). A nil Logger discards all
	// messages.
	Logger *slog.Logger
	// Observer receives the events of the server; it may be nil.
	Observer Observer
	// Debounce decides how long changes wait for others, to be pushed with them.
	Debounce xdsupdate.Debounce
	// Providers make resources on demand. They add to the resources of services and can replace
	// them: the first provider that has an answer for a name counts. Their names must be different, or New
	// panics. A client can subscribe to Limits.Types types on a stream, including the types of
	// services.
	Providers []Provider
	// Proxy returns the identity of a client. An error ends the client's stream, with the error's
	// status, before any response. The namespace decides which services the client may see, so a
	// program that does not trust nodes authenticates the peer, which ctx has, and derives the
	// identity from the peer, as package authn does. It is called for the first request of each
	// stream, and for ProxyUpdate, on any goroutine, with no lock held. The default is ProxyOf; if
	// the registries know the workload at the proxy's address, their labels replace the node's.
	Proxy func(ctx context.Context, node *core.Node) (*registry.Proxy, error)
	// PhaseTimeout is how long resources wait for the answer to a response: routes for the clusters
	// that they reference and for stricter listeners, removals for the listeners and routes that do
	// without the removed resources. Then they are sent regardless, and Observer.Overdue is called.
	// Default 15 s, within which an Envoy stops waiting for the warming of its new clusters
	// (initial_fetch_timeout). If it is negative, resources never wait.
	PhaseTimeout time.Duration
	// RemovalDelay is how long a cluster stays with a client after listeners have stopped sending
	// connections there. An Envoy keeps open connections when their cluster is removed; other
	// clients may not. WaitApplied does not wait for the delay. Default 0: the cluster is removed
	// as soon as the client has accepted the listeners.
	RemovalDelay time.Duration
	// Limits bound the requests of clients; the zero value has defaults.
	Limits Limits
	// LargeResponses is the number of responses of more than 64 KiB that may be in flight at a
	// time, each until its client has answered, so that changes for other clients are not behind
	// hundreds of them. Others wait in the order of their arrival. For each client that does not
	// answer within 50 ms one more may be in flight, up to 32 times as many, until clients answer
	// again. Default GOMAXPROCS; a negative number means no bound.
	LargeResponses int
}

const defaultPhaseTimeout = 15 * time.Second
