// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/randomobjects"
	"github.com/pilotkit/pilotkit/internal/test/testplane"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

const testTimeout = 30 * time.Second

// planeOptions are the options of a control plane; the zero value is valid.
type planeOptions struct {
	// mesh is Istio's mesh configuration.
	mesh *meshconfig.MeshConfig
	// address is where to listen; "" for any.
	address string
	// objects are the initial objects, and vault the secrets: see again.
	objects []configstore.Config
	vault   *vault
	// http10: gateways serve HTTP/1.0.
	http10 bool
	// keyRefresh is the interval for fetching keys of tokens. Zero is the default.
	keyRefresh time.Duration
	// fetcher fetches keys of tokens, and limits are those of resources. Zero is the default.
	fetcher traffic.KeyFetcher
	limits  traffic.Limits
	// unvalidated: the store takes invalid objects.
	unvalidated bool
	// ads are further options of the server, and grpc the options of the gRPC server.
	ads  ads.Options
	grpc []grpc.ServerOption
}

// plane is a control plane with policies and secrets.
type plane struct {
	*testplane.Plane
	options  planeOptions
	vault    *vault
	policies *traffic.Policies
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
	p := &plane{options: o, vault: o.vault}
	if p.vault == nil {
		p.vault = &vault{secrets: make(map[secrets.Name]*secrets.Secret)}
	}
	var credentials *secrets.Provider
	var schemas configstore.Schemas
	if o.unvalidated {
		schemas = randomobjects.Unvalidated()
	}
	p.Plane = testplane.Start(tb, testplane.Options{
		Schemas: schemas, Address: cmp.Or(o.address, "127.0.0.1:0"), Objects: o.objects, GRPC: o.grpc,
		Server: func(base *testplane.Plane) ads.Options {
			options := o.ads
			p.policies = traffic.New(base.Configs, traffic.Options{
				Mesh: o.mesh, HTTP10: o.http10, KeyRefresh: o.keyRefresh, KeyFetcher: o.fetcher, Limits: o.limits,
			})
			credentials = secrets.New(base.Configs, secrets.Options{Function: p.vault.get})
			p.vault.changed = credentials.Changed
			options.Providers = append(options.Providers, p.policies, credentials)
			return options
		},
		Parts: func(base *testplane.Plane) []func(<-chan struct{}) {
			return []func(<-chan struct{}){p.policies.Run, credentials.Run}
		},
	})
	return p
}

// again returns the options of a plane that takes the place of this one.
func (p *plane) again() planeOptions {
	o := p.options
	o.address, o.vault, o.objects = p.Address, p.vault, p.Objects()
	return o
}

func (p *plane) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	p.TB.Cleanup(cancel)
	return ctx
}

// edgeNode is a gateway with the label app=edge, in the namespace ingress.
func edgeNode() envoyproxy.Node {
	return envoyproxy.Node{Name: "edge", Namespace: "ingress", Labels: map[string]string{"app": "edge"}}
}

// edge starts a gateway of edgeNode that has the plane as its server.
func (p *plane) edge(delta bool) *envoyproxy.Proxy {
	p.TB.Helper()
	return envoyproxy.Start(p.TB, envoyproxy.Options{Node: edgeNode(), Server: p.Address, Delta: delta})
}

// readyEdge is edge with options, and returns when the gateway serves the configuration applied
// before.
func (p *plane) readyEdge(o envoyproxy.Options) *envoyproxy.Proxy {
	p.TB.Helper()
	p.Applied() // so that the Envoy listens when it is ready
	o.Node, o.Server = edgeNode(), p.Address
	proxy := envoyproxy.Start(p.TB, o)
	proxy.AwaitReady()
	p.Applied()
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
