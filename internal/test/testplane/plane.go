// SPDX-License-Identifier: Apache-2.0

// Package testplane runs a control plane for tests that put real proxies and clients behind it:
// a store of Istio's kinds, registries, and an xDS server on the loopback interface.
package testplane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

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
)

// patience is longer than anything takes.
const patience = 2 * time.Minute

// Options configure a Plane. The zero value serves the ServiceEntries of an empty store.
type Options struct {
	// Address is the address to listen on. Default: a free port of 127.0.0.1.
	Address string
	// Schemas are the kinds of the store. Default: Istio's.
	Schemas configstore.Schemas
	// Objects are in the store, and known to the server, before the first client connects.
	Objects []configstore.Config
	// GRPC are options of the gRPC server.
	GRPC []grpc.ServerOption
	// Server returns the options of the xDS server, which may read the plane's store. Default: none.
	Server func(*Plane) ads.Options
	// Registries are registries in addition to that of the ServiceEntries.
	Registries []func(xdsupdate.XDSUpdater) registry.Instance
	// Parts returns functions that run while the plane runs. Default: none.
	Parts func(*Plane) []func(stop <-chan struct{})
}

// Plane is a control plane that runs until its test ends or Stop is called.
type Plane struct {
	TB      testing.TB
	Store   *memory.Store
	Configs *memory.Controller // the cache of Store
	Server  *ads.Server
	Address string
	Stop    func()
}

// Start runs a control plane.
func Start(tb testing.TB, o Options) *Plane {
	tb.Helper()
	if len(o.Schemas.All()) == 0 {
		o.Schemas = istio.Schemas()
	}
	p := &Plane{TB: tb, Store: memory.Make(o.Schemas)}
	p.Configs = memory.NewController(p.Store)
	var options ads.Options
	if o.Server != nil {
		options = o.Server(p)
	}
	registries := aggregate.NewController()
	p.Server = ads.New(registries, options)
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(p.Configs, updater) })
	for _, add := range o.Registries {
		registries.AddRegistry(add)
	}
	p.Create(o.Objects...)
	p.Configs.Drain()
	parts := []func(<-chan struct{}){p.Configs.Run, registries.Run, p.Server.Run}
	if o.Parts != nil {
		parts = append(parts, o.Parts(p)...)
	}
	server := grpc.NewServer(o.GRPC...)
	p.Server.Register(server)
	listener := testserver.Listen(tb, o.Address)
	p.Address = listener.Addr().String()
	p.Stop = testserver.Serve(tb, listener, server, parts...)
	return p
}

// Objects returns the objects of the store, for use in another Plane.
func (p *Plane) Objects() (objects []configstore.Config) {
	for _, s := range istio.Schemas().All() {
		for _, c := range p.Configs.List(s.GroupVersionKind, configstore.NamespaceAll) {
			again := *c
			again.ResourceVersion = ""
			objects = append(objects, again)
		}
	}
	return objects
}

// Create creates objects, one after the other.
func (p *Plane) Create(configs ...configstore.Config) {
	p.TB.Helper()
	for _, c := range configs {
		if _, err := p.Configs.Create(c); err != nil {
			p.TB.Fatal(err)
		}
	}
}

// Update replaces an object.
func (p *Plane) Update(c configstore.Config) {
	p.TB.Helper()
	if _, err := p.Configs.Update(c); err != nil {
		p.TB.Fatal(err)
	}
}

// Delete deletes an object.
func (p *Plane) Delete(kind configstore.GroupVersionKind, namespace, name string) {
	p.TB.Helper()
	if err := p.Configs.Delete(kind, name, namespace, nil); err != nil {
		p.TB.Fatal(err)
	}
}

// Apply creates or replaces the objects of YAML, after each pair of old and new texts was
// replaced in it. As with kubectl apply, each object is a commit of its own.
func (p *Plane) Apply(text string, replace ...string) {
	p.TB.Helper()
	text = strings.NewReplacer(replace...).Replace(text)
	if err := manifest.Apply(p.Configs, []byte(text), manifest.Options{}); err != nil {
		p.TB.Fatal(err)
	}
}

// Change creates or replaces the objects of the first YAML text and deletes the objects of the
// second, in one commit.
func (p *Plane) Change(written, deleted string) {
	p.TB.Helper()
	batch := append(Upserts(Documents(p.TB, written)), mutations(configstore.OpDelete, Documents(p.TB, deleted))...)
	if _, err := p.Store.Apply(batch...); err != nil {
		p.TB.Fatal(err)
	}
}

// Upserts returns the batch that creates or replaces objects.
func Upserts(configs []configstore.Config) []configstore.Mutation {
	return mutations(configstore.OpUpsert, configs)
}

func mutations(op configstore.Op, configs []configstore.Config) (batch []configstore.Mutation) {
	for _, c := range configs {
		batch = append(batch, configstore.Mutation{Op: op, Config: c})
	}
	return batch
}

// Documents returns the objects of YAML.
func Documents(tb testing.TB, text string) (configs []configstore.Config) {
	tb.Helper()
	for _, document := range manifest.Parse(istio.Schemas(), []byte(text), manifest.Options{}) {
		if document.Err != nil {
			tb.Fatal(document.Err)
		}
		configs = append(configs, document.Config)
	}
	return configs
}

// Flush returns when the server knows the objects that were written before.
func (p *Plane) Flush() {
	p.TB.Helper()
	ctx, cancel := context.WithTimeout(p.TB.Context(), patience)
	defer cancel()
	if err := errors.Join(p.Configs.Flush(ctx), p.Server.Flush(ctx)); err != nil {
		p.TB.Fatal(err)
	}
}

// Applied returns when all connected clients have accepted the effects of all earlier writes.
func (p *Plane) Applied() {
	p.TB.Helper()
	testserver.Applied(p.TB, p.Configs, p.Server)
}

// Accepted fails the test if a client has rejected a response.
func (p *Plane) Accepted() {
	p.TB.Helper()
	testserver.Accepted(p.TB, p.Server)
}
