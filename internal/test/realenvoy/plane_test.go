// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

const testTimeout = 30 * time.Second

// planeOptions are those of a control plane; the zero value is good.
type planeOptions struct {
	// mesh is Istio's mesh configuration.
	mesh *meshconfig.MeshConfig
	// address is where to listen; "" for any.
	address string
	// objects are those that it begins with, and vault its secrets: see again.
	objects []configstore.Config
	vault   *vault
	// http10: gateways serve HTTP/1.0.
	http10 bool
	// keyRefresh is how often keys of tokens are fetched; 0: as by default.
	keyRefresh time.Duration
	// ads are further options of the server, and grpc those of the gRPC server.
	ads  ads.Options
	grpc []grpc.ServerOption
}

// plane is a control plane.
type plane struct {
	t       testing.TB
	options planeOptions
	store   *memory.Controller
	vault   *vault
	server  *ads.Server
	// policies are those of the server.
	policies *traffic.Policies
	address  string
	stop     func()
}

// always are the tests that run each day: traffic that moves, a route that the Envoy refuses, and
// a certificate that rotates.
var always = []string{"TestGateway", "TestSwitches", "TestQuarantine", "TestRotation"}

// sample skips most tests outside the full tier, others each day.
func sample(tb testing.TB) {
	tb.Helper()
	if name, _, _ := strings.Cut(tb.Name(), "/"); strings.HasPrefix(name, "Test") && !slices.Contains(always, name) {
		tier.Sample(tb, 6)
	}
}

// startPlane runs a control plane until the test ends.
func startPlane(tb testing.TB, o planeOptions) *plane {
	tb.Helper()
	sample(tb)
	p := &plane{t: tb, options: o, store: memory.NewController(memory.Make(istio.Schemas())), vault: o.vault}
	if p.vault == nil {
		p.vault = &vault{secrets: make(map[secrets.Name]*secrets.Secret)}
	}
	generator := secrets.New(secrets.Options{Function: p.vault.get})
	p.vault.changed = generator.Changed
	options := o.ads
	p.policies = traffic.New(p.store, traffic.Options{Mesh: o.mesh, HTTP10: o.http10, KeyRefresh: o.keyRefresh})
	options.Providers = []ads.Provider{p.policies}
	options.Generators = append(options.Generators, generator)
	options.Configs = func() ads.ConfigReader { return p.store.Snapshot() }
	registries := aggregate.NewController()
	p.server = ads.New(registries, options)
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(p.store, updater) })
	for _, c := range o.objects {
		if _, err := p.store.Create(c); err != nil {
			tb.Fatal(err)
		}
	}
	if len(o.objects) > 0 {
		p.store.Drain() // what there is is known before the first client comes
	}
	p.serve(registries.Run, func(stop <-chan struct{}) { generator.Run(p.server, stop) })
	return p
}

// serve runs the parts of the plane.
func (p *plane) serve(parts ...func(stop <-chan struct{})) {
	p.t.Helper()
	server := grpc.NewServer(p.options.grpc...)
	p.server.Register(server)
	listener := testserver.Listen(p.t, cmp.Or(p.options.address, "127.0.0.1:0"))
	p.address = listener.Addr().String()
	p.stop = testserver.Serve(p.t, listener, server, append(parts, p.store.Run, p.server.Run, p.policies.Run)...)
}

// again returns the options of a plane that takes the place of this one.
func (p *plane) again() planeOptions {
	o := p.options
	o.address, o.vault, o.objects = p.address, p.vault, nil
	for _, s := range istio.Schemas().All() {
		for _, c := range p.store.List(s.GroupVersionKind, "") {
			again := *c
			again.ResourceVersion = ""
			o.objects = append(o.objects, again)
		}
	}
	return o
}

func (p *plane) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	p.t.Cleanup(cancel)
	return ctx
}

// apply creates or updates the objects of a manifest. In it each pair of old and new
// texts is replaced before.
func (p *plane) apply(text string, replace ...string) {
	p.t.Helper()
	text = strings.NewReplacer(replace...).Replace(text)
	if err := manifest.Apply(p.store, []byte(text), manifest.Options{}); err != nil {
		p.t.Fatal(err)
	}
}

// remove deletes an object.
func (p *plane) remove(kind configstore.GroupVersionKind, namespace, name string) {
	p.t.Helper()
	if err := p.store.Delete(kind, name, namespace, nil); err != nil {
		p.t.Fatal(err)
	}
}

// flush makes what was applied known to the server.
func (p *plane) flush() {
	p.t.Helper()
	if err := errors.Join(p.store.Flush(p.context()), p.server.Flush(p.context())); err != nil {
		p.t.Fatal(err)
	}
}

// applied waits until the proxies have taken what there is for them.
func (p *plane) applied() {
	p.t.Helper()
	testserver.Applied(p.t, p.store, p.server)
}

// accepted fails the test if a proxy refused something.
func (p *plane) accepted() {
	p.t.Helper()
	testserver.Accepted(p.t, p.server)
}

// edgeNode is a gateway with the label app=edge, in the namespace ingress.
func edgeNode() envoyproxy.Node {
	return envoyproxy.Node{Name: "edge", Namespace: "ingress", Labels: map[string]string{"app": "edge"}}
}

// edge starts a gateway of edgeNode that has the plane as its server.
func (p *plane) edge(delta bool) *envoyproxy.Proxy {
	p.t.Helper()
	return envoyproxy.Start(p.t, envoyproxy.Options{Node: edgeNode(), Server: p.address, Delta: delta})
}

// readyEdge is edge with options, and returns when the gateway serves what was applied before.
func (p *plane) readyEdge(o envoyproxy.Options) *envoyproxy.Proxy {
	p.t.Helper()
	p.applied() // so that the Envoy listens when it is ready
	o.Node, o.Server = edgeNode(), p.address
	proxy := envoyproxy.Start(p.t, o)
	proxy.AwaitReady()
	p.applied()
	return proxy
}

// eachProtocol runs a test once for each protocol of xDS; outside the full tier by delta alone.
func eachProtocol(t *testing.T, test func(t *testing.T, delta bool)) {
	t.Helper()
	envoyproxy.Require(t)
	for name, delta := range map[string]bool{"SotW": false, "delta": true} {
		if delta || tier.Full() {
			t.Run(name, func(t *testing.T) { test(t, delta) })
		}
	}
}
