// SPDX-License-Identifier: Apache-2.0

package mosn

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const testTimeout = 30 * time.Second

// plane is a control plane for one gateway.
type plane struct {
	t      *testing.T
	store  *memory.Controller
	server *ads.Server
	port   int
	inline *inliner
}

// startPlane runs a control plane whose gateways may have a secret, "edge".
func startPlane(t *testing.T, edge *secrets.Secret) *plane {
	t.Helper()
	p := &plane{t: t, store: memory.NewController(memory.Make(istio.Schemas())), inline: &inliner{}}
	generator := secrets.New(secrets.Options{Function: func(n secrets.Name) (*secrets.Secret, error) {
		if n != (secrets.Name{Namespace: "ingress", Name: "kubernetes://edge"}) {
			return nil, secrets.ErrNotFound
		}
		return edge, nil
	}})
	registries := aggregate.NewController()
	p.server = ads.New(registries, ads.Options{
		// MOSN has no certificates of a mesh.
		Provider: traffic.New(p.store, traffic.Options{Mesh: &meshconfig.MeshConfig{EnableAutoMtls: wrapperspb.Bool(false)}}), Generators: []ads.Generator{generator},
		Configs: func() ads.ConfigReader { return p.store.Snapshot() },
	})
	registries.Add(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(p.store, updater) })
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.port = listener.Addr().(*net.TCPAddr).Port
	server := grpc.NewServer(grpc.StreamInterceptor(p.inline.intercept))
	p.server.Register(server)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, run := range []func(<-chan struct{}){p.store.Run, registries.Run, p.server.Run} {
		running.Go(func() { run(stop) })
	}
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		close(stop)
		running.Wait()
	})
	return p
}

func (p *plane) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	p.t.Cleanup(cancel)
	return ctx
}

// set creates or updates an object of the namespace "ingress".
func (p *plane) set(kind configstore.GroupVersionKind, name string, spec proto.Message) {
	p.t.Helper()
	c := configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Namespace: "ingress", Name: name}, Spec: spec}
	var err error
	if old := p.store.Get(kind, name, "ingress"); old != nil {
		c.ResourceVersion = old.ResourceVersion
		_, err = p.store.Update(c)
	} else {
		_, err = p.store.Create(c)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// applied waits until the proxy has taken what there is for it.
func (p *plane) applied() {
	p.t.Helper()
	if err := p.store.Flush(p.context()); err != nil {
		p.t.Fatal(err)
	}
	if err := p.server.Flush(p.context()); err != nil {
		p.t.Fatal(err)
	}
	if err := p.server.WaitApplied(p.context(), nil); err != nil {
		p.t.Fatal(err)
	}
}

// fetchSecrets asks for secrets as a gateway does, for listeners to have them.
func (p *plane) fetchSecrets(names ...string) {
	p.t.Helper()
	conn, err := grpc.NewClient((&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.port}).String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	c := xdstest.NewClient(conn, xdstest.ClientOptions{
		Delta: true, Node: &core.Node{Id: "router~127.0.0.1~secrets.ingress~ingress.svc.cluster.local"},
	})
	defer c.Close()
	if err := c.Connect(p.context()); err != nil {
		p.t.Fatal(err)
	}
	if err := c.Subscribe(secrets.Type, names...); err != nil {
		p.t.Fatal(err)
	}
	if err := c.Await(p.context(), func(s xdstest.State) bool { return s.Has(secrets.Type, names...) }); err != nil {
		p.t.Fatal(err)
	}
	for name, r := range c.State().Resources(secrets.Type) {
		m, err := r.Message()
		if err != nil {
			p.t.Fatal(err)
		}
		p.inline.set(name, m.(*tlsv3.Secret))
	}
}
