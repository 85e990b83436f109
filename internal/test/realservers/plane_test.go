// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// patience is more than anything takes.
const patience = 30 * time.Second

// plane is a control plane.
type plane struct {
	t       *testing.T
	store   *memory.Store
	configs *memory.Controller
	server  *ads.Server
	address string
}

// startPlane serves what documents say.
func startPlane(t *testing.T, text string) *plane {
	t.Helper()
	p := &plane{t: t, store: memory.Make(istio.Schemas())}
	p.configs = memory.NewController(p.store)
	mesh := &meshconfig.MeshConfig{TrustDomain: "cluster.local"}
	registries := aggregate.NewController()
	p.server = ads.New(registries, ads.Options{Providers: []ads.Provider{traffic.New(p.configs, traffic.Options{Mesh: mesh})}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(p.configs, updater) })
	p.apply(text)
	p.configs.Drain()
	server := grpc.NewServer()
	p.server.Register(server)
	listener := testserver.Listen(t, "127.0.0.1:0")
	p.address = listener.Addr().String()
	testserver.Serve(t, listener, server, p.configs.Run, registries.Run, p.server.Run)
	return p
}

// documents returns the objects of YAML.
func documents(t *testing.T, text string) (out []configstore.Config) {
	t.Helper()
	for _, doc := range manifest.Parse(istio.Schemas(), []byte(text), manifest.Options{}) {
		if doc.Err != nil {
			t.Fatal(doc.Err)
		}
		out = append(out, doc.Config)
	}
	return out
}

// apply creates or replaces objects, as one batch.
func (p *plane) apply(text string) {
	p.t.Helper()
	p.change(text, "")
}

// change creates or replaces objects and deletes others, as one batch.
func (p *plane) change(written, deleted string) {
	p.t.Helper()
	var batch []configstore.Mutation
	for _, c := range documents(p.t, written) {
		batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: c})
	}
	for _, c := range documents(p.t, deleted) {
		batch = append(batch, configstore.Mutation{Op: configstore.OpDelete, Config: c})
	}
	if _, err := p.store.Apply(batch...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plane) write(configs []configstore.Config) error {
	var batch []configstore.Mutation
	for _, c := range configs {
		batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: c})
	}
	_, err := p.store.Apply(batch...)
	return err
}

// remove deletes objects, as one batch.
func (p *plane) remove(text string) {
	p.t.Helper()
	p.change("", text)
}

// applied returns when all servers have answered what they were sent.
func (p *plane) applied() {
	p.t.Helper()
	testserver.Applied(p.t, p.configs, p.server)
}

// accepted fails the test if a server has refused something.
func (p *plane) accepted() {
	p.t.Helper()
	testserver.Accepted(p.t, p.server)
}
