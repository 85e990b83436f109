// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// plane is a control plane: ServiceEntries in a store, hosts that a test fills in
// by hand, and the server of both.
type plane struct {
	t       *testing.T
	configs *memory.Controller
	hosts   *registrymemory.Registry
	server  *ads.Server
	address string
	stop    func()
}

// startPlane serves some configs on an address; "" takes a free one.
// All of the configs are known when the server starts.
func startPlane(t *testing.T, address string, configs ...configstore.Config) *plane {
	t.Helper()
	return startPlaneWith(t, address, func(*plane) ads.Options { return ads.Options{} }, configs...)
}

// startPlaneWith is startPlane with options of the server, which may be made of the
// plane's configs.
func startPlaneWith(t *testing.T, address string, options func(*plane) ads.Options, configs ...configstore.Config) *plane {
	t.Helper()
	return startPlaneOn(t, grpc.NewServer(), address, options, configs...)
}

// startPlaneOn is startPlaneWith for a gRPC server.
func startPlaneOn(t *testing.T, server *grpc.Server, address string, options func(*plane) ads.Options, configs ...configstore.Config) *plane {
	t.Helper()
	p := &plane{t: t, configs: memory.NewController(memory.Make(istio.Schemas()))}
	registries := aggregate.NewController()
	p.server = ads.New(registries, options(p))
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(p.configs, updater) })
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		p.hosts = registrymemory.New(registrymemory.Options{Updater: updater})
		return p.hosts
	})
	p.create(configs...)
	p.configs.Drain()

	p.server.Register(server)
	listener := testserver.Listen(t, address)
	p.address = listener.Addr().String()
	p.stop = testserver.Serve(t, listener, server, p.configs.Run, registries.Run, p.server.Run)
	return p
}

func (p *plane) create(configs ...configstore.Config) {
	p.t.Helper()
	for _, c := range configs {
		if _, err := p.configs.Create(c); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *plane) update(c configstore.Config) {
	p.t.Helper()
	if _, err := p.configs.Update(c); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plane) remove(c configstore.Config) {
	p.t.Helper()
	if err := p.configs.Delete(c.GroupVersionKind, c.Name, c.Namespace, nil); err != nil {
		p.t.Fatal(err)
	}
}

// applied returns when every connected client has accepted all that follows from
// what was written before.
func (p *plane) applied() {
	p.t.Helper()
	testserver.Applied(p.t, p.configs, p.server)
}

// accepted fails the test if a client refused something.
func (p *plane) accepted() {
	p.t.Helper()
	testserver.Accepted(p.t, p.server)
}

// connected returns when a client has asked for something.
func (p *plane) connected() {
	p.t.Helper()
	p.poll("client", func() bool { return len(p.server.Proxies()) > 0 })
}

// poll returns when a condition is true. Clients that lost their server come back
// after a while: one second at least, and more after each attempt.
func (p *plane) poll(what string, condition func() bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("no %s: %+v", what, p.server.Proxies())
		}
	}
}

// versions returns what the client has accepted, by type, as soon as it has
// accepted resources of all types. It has to be the only one.
func (p *plane) versions() (versions map[string]string) {
	p.t.Helper()
	const types = 4
	p.poll("client that has accepted resources of all types", func() bool {
		versions = p.accepting()
		return len(versions) == types
	})
	return versions
}

// accepting returns the versions of the types of which the client has everything.
func (p *plane) accepting() map[string]string {
	p.t.Helper()
	p.applied()
	versions := make(map[string]string)
	for _, proxy := range p.server.Proxies() {
		for typeURL, status := range proxy.Types {
			if status.Acked != "" && !status.Pending {
				versions[typeURL] = status.Acked
			}
		}
	}
	return versions
}

// The service that most scenarios are about.
const (
	host   = "api.example.com"
	target = "xds:///" + host + ":80"
)

// entry returns a STATIC service with one gRPC port, 80.
func entry(endpoints ...*networking.WorkloadEntry) configstore.Config {
	return edited(func(*networking.ServiceEntry) {}, endpoints...)
}

// edited returns what entry returns, after an edit.
func edited(edit func(*networking.ServiceEntry), endpoints ...*networking.WorkloadEntry) configstore.Config {
	spec := &networking.ServiceEntry{
		Hosts:      []string{host},
		Ports:      []*networking.ServicePort{{Number: 80, Name: "grpc", Protocol: "GRPC"}},
		Resolution: networking.ServiceEntry_STATIC,
		Endpoints:  endpoints,
	}
	edit(spec)
	meta := configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: "api", Namespace: "shop"}
	return configstore.Config{Meta: meta, Spec: spec}
}
