// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// clusterID is that of everything in the scenarios.
const clusterID = "Kubernetes"

// system is the library, put together as a scenario asks for, and its proxies.
type system struct {
	scenario *scenario
	store    *storememory.Controller
	server   *ads.Server
	requests *requestCounter
	mesh     *meshconfig.MeshConfig
	clients  []*client
	// delegates are the delegates of all steps.
	delegates []*configstore.Config
	// refused are the objects whose last state we refuse, with its specs.
	refused map[objectRef]any
	created int
	// routed is the number of calls that were decided by routers.
	routed int
	stop   func()
}

// newSystem starts the parts and the proxies; stop ends them.
func newSystem(ctx context.Context, s *scenario) (*system, error) {
	sys, err := assemble(s)
	if err != nil {
		return nil, err
	}
	conn, err := sys.serve()
	if err != nil {
		return nil, err
	}
	for _, p := range s.Proxies {
		c := newClient(p, sys, conn)
		sys.clients = append(sys.clients, c)
		if err := c.Connect(ctx); err != nil {
			sys.stop()
			return nil, err
		}
	}
	return sys, nil
}

// assemble puts the parts together, with further options of the server.
func assemble(s *scenario, more ...func(configstore.ConfigStoreCache) ads.Provider) (*system, error) {
	sys := &system{refused: make(map[objectRef]any), scenario: s, requests: newRequestCounter(), mesh: &meshconfig.MeshConfig{}, delegates: delegatesOf(s)}
	networks := &meshconfig.MeshNetworks{}
	if err := errors.Join(fromYAML(s.Options.MeshConfig, sys.mesh), fromYAML(s.Options.MeshNetworks, networks)); err != nil {
		return nil, err
	}
	sys.store = storememory.NewController(storememory.Make(istio.Schemas(), storememory.Options{DetectMutations: true}))
	registries := aggregate.NewController()
	options := ads.Options{Observer: sys.requests, Providers: []ads.Provider{traffic.New(sys.store, traffic.Options{
		Mesh: sys.mesh, Networks: networks, FilterGatewayClusters: s.Options.Features.FilterGatewayClusterConfig,
		MultipleCustomProviders: s.Options.Features.MultipleCustomProviders,
	})}}
	for _, provider := range more {
		options.Providers = append(options.Providers, provider(sys.store))
	}
	sys.server = ads.New(registries, options)
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(sys.store, updater, serviceentry.Options{
			ClusterID: clusterID, Mesh: serviceentry.Mesh{TrustDomain: sys.mesh.GetTrustDomain()},
		})
	})
	return sys, nil
}

// serve runs the server and returns a connection to it.
func (sys *system) serve() (*grpc.ClientConn, error) {
	listener := memnet.Listen()
	server := grpc.NewServer()
	sys.server.Register(server)
	conn, err := grpc.NewClient("passthrough:///", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.Dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	running.Go(func() { sys.server.Run(stop) })
	sys.stop = func() {
		for _, c := range sys.clients {
			c.Close()
		}
		_ = conn.Close()
		close(stop)
		server.Stop()
		running.Wait()
	}
	return conn, nil
}

// fromYAML fills a message from a part of a scenario.
func fromYAML(from map[string]any, m proto.Message) error {
	if len(from) == 0 {
		return nil
	}
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m)
}

// The values of result.Outcome.
const (
	outcomeOK         = "ok"
	outcomeInvalid    = "invalid"
	outcomeUnparsable = "unparsable"
	outcomeNotFound   = "notfound"
)

// step runs a step and returns its results when all proxies have been updated.
func (sys *system) step(ctx context.Context, st step) ([]result, error) {
	results := sys.change(st)
	if err := sys.catchUp(ctx); err != nil {
		return results, err
	}
	return results, nil
}

// change runs a step and returns its results when the server knows of it.
func (sys *system) change(st step) []result {
	var results []result
	if st.Delete != nil {
		results = []result{sys.delete(*st.Delete)}
	} else {
		results = sys.apply(*st.Apply)
	}
	for range 2 { // a registry's writes to the store affect the registry again
		sys.store.Drain()
	}
	return results
}

func parse(text string) []manifest.Document {
	return manifest.Parse(istio.Schemas(), []byte(text), manifest.Options{})
}

func (sys *system) apply(text string) []result {
	var out []result
	for _, doc := range parse(text) {
		ref := objectRef{Kind: doc.Key.Kind.Kind, Namespace: doc.Key.Namespace, Name: doc.Key.Name}
		r := result{Object: ref.String(), Outcome: outcomeOK, spec: doc.Config.Spec}
		err, refused := doc.Err, outcomeUnparsable
		if err == nil {
			refused = outcomeInvalid
			err = sys.write(t16(doc.Config, sys.delegates))
		}
		if err != nil {
			r.Outcome, r.Messages = refused, []string{err.Error()}
		}
		if delete(sys.refused, ref); err != nil {
			sys.refused[ref] = doc.Config.Spec
		}
		out = append(out, r)
	}
	return out
}

// write creates or updates an object, with the creation time of README.md.
func (sys *system) write(c configstore.Config) error {
	c.ResourceVersion = ""
	current := sys.store.Get(c.GroupVersionKind, c.Name, c.Namespace)
	if current != nil {
		if c.CreationTimestamp.IsZero() {
			c.CreationTimestamp = current.CreationTimestamp
		}
		_, err := sys.store.Update(c)
		return err
	}
	if c.CreationTimestamp.IsZero() {
		c.CreationTimestamp = time.Date(2024, 1, 1, 0, 0, sys.created, 0, time.UTC)
	}
	_, err := sys.store.Create(c)
	if err == nil {
		sys.created++
	}
	return err
}

func (sys *system) delete(ref objectRef) result {
	r := result{Object: ref.String(), Outcome: outcomeOK}
	for _, s := range istio.Schemas().All() {
		if s.GroupVersionKind.Kind != ref.Kind {
			continue
		}
		if err := sys.store.Delete(s.GroupVersionKind, ref.Name, ref.Namespace, nil); err != nil {
			r.Outcome, r.Messages = outcomeNotFound, []string{err.Error()}
		}
	}
	return r
}

// subscribeInterval is how long proxies wait before they look at what they have while the server
// holds back resources, which may wait for a subscription.
const subscribeInterval = 50 * time.Millisecond

// catchUp waits until every proxy is up to date.
func (sys *system) catchUp(ctx context.Context) error {
	for {
		step, cancel := context.WithTimeout(ctx, subscribeInterval)
		err := sys.server.WaitApplied(step, nil)
		cancel()
		if ctx.Err() != nil {
			return fmt.Errorf("not applied: %w", err)
		}
		changed := err != nil
		for _, c := range sys.clients {
			more, err := c.follow(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", c.spec.Name, err)
			}
			changed = changed || more
		}
		if !changed {
			return nil
		}
	}
}
