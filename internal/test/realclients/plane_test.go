// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/testplane"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// plane is a control plane: ServiceEntries in a store, and hosts that a test fills in by hand.
type plane struct {
	*testplane.Plane
	hosts *registrymemory.Registry
}

// startPlane serves some configs on an address; "" takes a free one.
// All of the configs are known when the server starts.
func startPlane(t *testing.T, address string, configs ...configstore.Config) *plane {
	t.Helper()
	return startPlaneWith(t, testplane.Options{Address: address}, configs...)
}

// startPlaneWith is startPlane with options.
func startPlaneWith(t *testing.T, o testplane.Options, configs ...configstore.Config) *plane {
	t.Helper()
	p := &plane{}
	o.Objects = configs
	o.Registries = append(o.Registries, func(updater xdsupdate.XDSUpdater) registry.Instance {
		p.hosts = registrymemory.New(registrymemory.Options{Updater: updater})
		return p.hosts
	})
	p.Plane = testplane.Start(t, o)
	return p
}

func (p *plane) remove(c configstore.Config) {
	p.TB.Helper()
	p.Delete(c.GroupVersionKind, c.Namespace, c.Name)
}

// connected returns when a client has asked for something.
func (p *plane) connected() {
	p.TB.Helper()
	p.poll("client", func() bool { return len(p.Server.Proxies()) > 0 })
}

// poll returns when a condition is true. Clients that lost their server come back
// after a while: one second at least, and more after each attempt.
func (p *plane) poll(what string, condition func() bool) {
	p.TB.Helper()
	ctx, cancel := context.WithTimeout(p.TB.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.TB.Fatalf("no %s: %+v", what, p.Server.Proxies())
		}
	}
}

// versions returns the versions that the client has accepted, by type, as soon as it has accepted
// resources of all types. It must be the only one.
func (p *plane) versions() (versions map[string]string) {
	p.TB.Helper()
	const types = 4
	p.poll("client that has accepted resources of all types", func() bool {
		versions = p.accepting()
		return len(versions) == types
	})
	return versions
}

// accepting returns the versions of the types whose resources the client has accepted completely.
func (p *plane) accepting() map[string]string {
	p.TB.Helper()
	p.Applied()
	versions := make(map[string]string)
	for _, proxy := range p.Server.Proxies() {
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
