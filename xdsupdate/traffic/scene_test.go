// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/randomobjects"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// scene is a control plane as a program wires it: a store, services of ServiceEntries and
// of Kubernetes, policies, and a server that clients talk to.
type scene struct {
	t          testing.TB
	store      *storememory.Controller
	configs    configstore.ConfigStoreCache // what registries read; nil: the store
	services   registry.ServiceDiscovery
	kubernetes *registrymemory.Registry
	policies   *traffic.Policies // nil: none, what is sent is built in
	provided   *recorder         // nil: nothing is recorded
	server     *ads.Server
	conn       *grpc.ClientConn
	clusterID  registry.ClusterID
	clients    int // that were numbered
	close      func()
}

// newScene starts a control plane with policies.
func newScene(tb testing.TB, options traffic.Options) *scene {
	tb.Helper()
	return given(tb, options, istio.Schemas(), nil, nil)
}

// newPlainScene starts a control plane without policies.
func newPlainScene(tb testing.TB) *scene {
	tb.Helper()
	s := &scene{t: tb, store: storememory.NewController(storememory.Make(istio.Schemas()))}
	s.wire(ads.Options{})
	s.serve()
	return s
}

// stage starts a control plane that has objects, services and endpoints before its first
// client comes. Its store validates nothing: what is left out or made harmless is so
// because of what the objects say.
func stage(tb testing.TB, options traffic.Options, objects configList, services *population) *scene {
	tb.Helper()
	return given(tb, options, lenientSchemas(), objects, services)
}

// lenientSchemas are those of Istio's kinds without validation.
var lenientSchemas = sync.OnceValue(randomobjects.Unvalidated)

func given(tb testing.TB, options traffic.Options, schemas configstore.Schemas, objects configList, services *population) *scene {
	tb.Helper()
	s := &scene{t: tb, store: storememory.NewController(storememory.Make(schemas))}
	s.policies = traffic.New(s.store, options)
	s.provided = &recorder{Policies: s.policies}
	s.wire(ads.Options{Providers: []ads.Provider{s.provided}})
	s.create(objects)
	if services != nil {
		for _, svc := range services.services {
			s.must(s.kubernetes.SetService(svc))
			if list := services.endpoints[svc]; list != nil {
				s.must(s.kubernetes.SetEndpoints(svc.Hostname, svc.Attributes.Namespace, list))
			}
		}
	}
	s.store.Drain() // the first push has everything
	s.serve()
	s.applied()
	return s
}

// applyAll stores objects in one batch.
func (s *scene) applyAll(objects configList) {
	s.t.Helper()
	var batch []configstore.Mutation
	for _, c := range objects {
		batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: *c})
	}
	_, err := s.store.Apply(batch...)
	s.must(err)
}

// create stores objects that are not there yet.
func (s *scene) create(objects configList) {
	s.t.Helper()
	for _, c := range objects {
		_, err := s.store.Create(*c)
		s.must(err)
	}
}

// wire makes the server and its registries.
func (s *scene) wire(options ads.Options) {
	registries := aggregate.NewController()
	options.Debounce.After = -1
	s.services, s.server = registries, ads.New(registries, options)
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		s.kubernetes = registrymemory.New(registrymemory.Options{Updater: updater, Provider: registry.Kubernetes})
		return s.kubernetes
	})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(cmp.Or[configstore.ConfigStoreCache](s.configs, s.store), updater, serviceentry.Options{ClusterID: s.clusterID})
	})
}

// serve runs the server until the end of the test.
func (s *scene) serve() {
	s.t.Helper()
	server := grpc.NewServer(ads.ServerOptions()...)
	s.server.Register(server)
	s.conn, s.close = testserver.ServeMemory(s.t, server, s.server.Run)
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// apply stores the objects of YAML documents, whose namespace is "shop" unless they
// say another one, and waits until they were pushed.
func (s *scene) apply(yaml string) {
	s.t.Helper()
	s.must(manifest.Apply(s.store, []byte(yaml), manifest.Options{DefaultNamespace: "shop"}))
	s.flush()
}

// change stores objects, of which those that are there stay as old as they are, and waits
// until all clients have what follows.
func (s *scene) change(objects configList) {
	s.t.Helper()
	for _, o := range objects {
		c := *o
		if before := s.store.Get(c.GroupVersionKind, c.Name, c.Namespace); before != nil {
			c.CreationTimestamp = before.CreationTimestamp
		}
		_, err := configstore.Upsert(s.store, c)
		s.must(err)
	}
	s.applied()
}

func (s *scene) flush() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	s.store.Drain()
	s.kubernetes.Drain()
	s.must(s.server.Flush(ctx))
}

// applied waits until every client has all that there is for it. That some resource
// cannot be made is what a test may be about.
func (s *scene) applied() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	s.store.Drain()
	s.kubernetes.Drain()
	if err := s.server.WaitApplied(ctx, nil); !errors.Is(err, ads.ErrNotUpdated) {
		s.must(err)
	}
}

// service sets a service of Kubernetes in the namespace shop, with its endpoints.
func (s *scene) service(svc *registry.Service, endpoints ...*registry.Endpoint) {
	s.t.Helper()
	svc.Attributes.Namespace, svc.CreationTime = "shop", time.Unix(1, 0)
	if svc.DefaultAddress == "" {
		svc.DefaultAddress = registry.UnspecifiedAddress
	}
	s.must(s.kubernetes.SetService(svc))
	s.endpoints(svc.Hostname, endpoints...)
}

// endpoints replaces the endpoints of a service of the namespace shop.
func (s *scene) endpoints(host registry.Hostname, endpoints ...*registry.Endpoint) {
	s.t.Helper()
	s.must(s.kubernetes.SetEndpoints(host, "shop", endpoints))
	s.flush()
}

// endpoint returns an endpoint of a service port; mode is its TLS mode.
func endpoint(address string, number uint32, name, mode string) *registry.Endpoint {
	return &registry.Endpoint{
		Addresses: []string{address}, EndpointPort: number, ServicePortName: name, HealthStatus: registry.Healthy,
		Shared: &registry.EndpointAttributes{Namespace: "shop", TLSMode: mode},
	}
}
