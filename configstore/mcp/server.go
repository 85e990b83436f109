// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"slices"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// moreTypes is the number of types that a client may request in addition to the server's types: a
// stock Istio requests its own kinds and MeshConfig.
const moreTypes = 64

// ServerOptions for NewServer. The zero value works.
type ServerOptions struct {
	// Revision is the revision of clients whose node has none: see the package comment. By default
	// such clients get all objects.
	Revision string
	// ADS are the options of the streams: Logger, Observer, Limits, Pusher (for the
	// debounce), LargeResponses. Of the results of Proxy, only the error, which rejects the client,
	// and the ID count. The default of Limits.Types is 64 more than the number of types of the
	// server. Providers may have resources of types that the cache does not have; the server's own
	// provider precedes them.
	ADS ads.Options
}

// Server serves the configs of a cache to other control planes: a stock Istio that has
// xds:// among its configSources, or a Source. The package comment says how it behaves.
type Server struct {
	cache   configstore.ConfigStoreCache
	configs *provider
	streams *ads.Server
	running atomic.Bool
}

var _ configstore.Flusher = (*Server)(nil)

// NewServer returns a server of all kinds of a cache. The caller runs the cache, before or after
// this call. NewServer panics if the cache is nil, if there are two options, and if ads.New rejects
// ServerOptions.ADS.
func NewServer(cache configstore.ConfigStoreCache, opts ...ServerOptions) *Server {
	o := options.One("mcp.NewServer", opts)
	if cache == nil {
		panic("mcp.NewServer: the cache is nil")
	}
	p := newProvider(cache, ProviderOptions{Revision: o.Revision}, func(*core.Node, *registry.Proxy) bool { return true })
	streams := o.ADS
	streams.Providers = slices.Concat([]ads.Provider{p}, o.ADS.Providers)
	streams.Proxy = identified(o.ADS.Proxy)
	if streams.Limits.Types == 0 {
		streams.Limits.Types = moreTypes + len(p.types)
	}
	return &Server{cache: cache, configs: p, streams: ads.New(nil, streams)}
}

// identified returns Options.Proxy of the streams. Only the ID is taken from the client's node, so
// that all clients of a revision share their resources.
func identified(proxyOf func(context.Context, *core.Node) (*registry.Proxy, error)) func(context.Context, *core.Node) (*registry.Proxy, error) {
	return func(ctx context.Context, node *core.Node) (*registry.Proxy, error) {
		if proxyOf == nil {
			return &registry.Proxy{ID: node.GetId()}, nil
		}
		p, err := proxyOf(ctx, node)
		if p == nil || err != nil {
			return nil, err
		}
		return &registry.Proxy{ID: p.ID}, nil
	}
}

// Register adds the aggregated discovery service to a gRPC server, which can have only one: for a
// server that also serves proxies, see NewProvider. Streams may be opened before Run; they get
// responses when Run has seen the cache synced.
func (s *Server) Register(server grpc.ServiceRegistrar) { s.streams.Register(server) }

// Run waits until the cache has synced, and then serves its content until stop is closed. It ends
// all streams with the status Unavailable, and returns when all its goroutines have ended. A second
// call panics.
func (s *Server) Run(stop <-chan struct{}) {
	if s.running.Swap(true) {
		panic("mcp: Run called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Run has a stop channel
	var stopping sync.WaitGroup
	stopping.Go(func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	})
	_ = configstore.WaitForSync(ctx, s.cache) // else it has stopped
	cancel()
	stopping.Wait()
	s.streams.Run(stop) // after a stop it pushes nothing, and ends the streams
	s.configs.configs.Close()
}

// Flush pushes the changes that the cache has delivered before the call, without delay, and returns
// when they have been handed to the streams that they concern. It waits until the cache has synced.
// Before Run it does the work itself; after Run has ended it fails. The error is that failure, or
// the cause of ctx's end, wrapped.
func (s *Server) Flush(ctx context.Context) error {
	if err := configstore.WaitForSync(ctx, s.cache); err != nil {
		return fmt.Errorf("flush configs: %w", err)
	}
	return s.streams.Flush(ctx)
}

// Proxies returns the clients, one for each stream, sorted by ID, with their accepted resources of
// each kind by type URL. Faults of ADS lists their NACKs with texts. A stock Istio never acknowledges
// MeshConfig, which stays pending.
func (s *Server) Proxies() []ads.ProxyStatus { return s.streams.Proxies() }

// ADS returns the server of the streams, which Proxies reports on. Use it to end the streams of
// clients that have lost their authorization (ReviewProxies), to wait for ACKs (WaitApplied), or to
// show the clients' configuration by CSDS. It must not be run, and must be flushed by Flush only.
func (s *Server) ADS() *ads.Server { return s.streams }
