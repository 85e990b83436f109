// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/mcp"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// plane is the control plane.
type plane struct {
	settings   *settings
	log        *slog.Logger
	sources    *sources
	registries *aggregate.Controller
	policies   *traffic.Policies
	secrets    *secrets.Provider
	metrics    *prometheus.Metrics
	server     *ads.Server
	xds        *xds
	admin      *admin
	ready      *readiness
}

// newPlane wires the parts together, and listens. It runs nothing yet.
func newPlane(ctx context.Context, s *settings, out io.Writer) (*plane, error) {
	p := &plane{settings: s, log: slog.New(slog.NewTextHandler(out, nil)), metrics: prometheus.New()}
	p.registries = aggregate.NewController(aggregate.Options{Logger: p.log})
	var err error
	if p.sources, err = newSources(s, p.log); err != nil { //nolint:contextcheck // caches begin without one
		return nil, err
	}
	p.ready = newReadiness(p.sources, func() []traffic.Ineffective { return p.policies.Closed() })
	if err := p.listen(ctx); err != nil {
		p.sources.closeAll()
		return nil, err
	}
	return p, nil
}

// listen creates the servers. It listens on the ports immediately, so that problems with them are
// reported at once.
func (p *plane) listen(ctx context.Context) (err error) {
	if p.xds, err = listenXDS(ctx, p.settings, p.registries, p.log); err != nil {
		return err
	}
	p.connect()
	if p.admin, err = listenAdmin(ctx, p); err != nil {
		p.xds.listener.Close()
	}
	return err
}

// kindsOfControlPlanes is the maximum number of types that a control plane may subscribe to by MCP.
const kindsOfControlPlanes = 100

// connect creates the parts that consume the sources.
func (p *plane) connect() {
	configs := p.sources.configs
	p.policies = traffic.New(configs, traffic.Options{Domain: p.settings.domain, Logger: p.log})
	// Proxies read the files that Gateways and DestinationRules reference on their own hosts. For
	// keys that the control plane serves, see package secrets.
	p.secrets = secrets.New(configs, secrets.Options{Logger: p.log})
	p.server = ads.New(p.registries, ads.Options{
		Logger: p.log, Observer: p.metrics, Proxy: p.xds.proxy(),
		Providers: []ads.Provider{mcp.NewProvider(configs, mcp.ProviderOptions{ControlPlanes: p.settings.controlPlaneIDs()}), p.policies, p.secrets},
		Limits:    ads.Limits{Types: kindsOfControlPlanes},
	})
	for _, add := range p.sources.registries {
		p.registries.AddRegistry(add)
	}
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
}

// run runs the program until ctx ends or a part has failed.
func (p *plane) run(ctx context.Context) error {
	defer p.sources.closeAll()
	p.log.Info("reading sources", slog.String("admin", p.admin.listener.Addr().String()))
	afterSync := func(name string, run func(stop <-chan struct{})) configstore.Part {
		part := configstore.Runs(name, run, nil)
		part.AfterSync = true
		return part
	}
	return (&configstore.Group{Logger: p.log, Patience: p.settings.drain + p.settings.patience, Parts: slices.Concat(
		[]configstore.Part{{Name: "admin", Run: p.admin.run}},
		p.sources.parts,
		[]configstore.Part{
			configstore.Runs("configs", p.sources.configs.Run, p.sources.configs),
			configstore.Runs("registries", p.registries.Run, p.registries),
			afterSync("keys of tokens", p.policies.Run),
			afterSync("secrets", p.secrets.Run),
			{Name: "xds", AfterSync: true, Run: p.serve},
		},
	)}).Run(ctx)
}

// serve pushes the initial state, and serves until stop is closed and clients had time to move to
// another replica.
func (p *plane) serve(stop <-chan struct{}) error {
	p.ready.enter(pushing)
	if err := p.server.Flush(context.Background()); err != nil { //nolint:forbidigo // a push ends by itself
		return fmt.Errorf("push the initial state: %w", err)
	}
	p.ready.enter(serving)
	p.log.Info("serving", slog.String("xds", p.xds.listener.Addr().String()), slog.String("admin", p.admin.listener.Addr().String()),
		slog.Int("services", len(p.registries.Services())))
	drained := make(chan struct{})
	go func() {
		<-stop
		p.ready.enter(stopping)
		<-time.After(p.settings.drain)
		close(drained)
	}()
	return p.xds.run(p.server, drained)
}
