// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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
	secrets    *secrets.Generator
	metrics    *prometheus.Metrics
	server     *ads.Server
	xds        *xds
	admin      *admin
	ready      *readiness
}

// newPlane wires the parts together, and listens. Nothing runs yet.
func newPlane(ctx context.Context, s *settings, out io.Writer) (*plane, error) {
	p := &plane{settings: s, log: slog.New(slog.NewTextHandler(out, nil)), registries: aggregate.NewController(), metrics: prometheus.New()}
	var err error
	if p.sources, err = newSources(s, p.log); err != nil { //nolint:contextcheck // caches begin without one
		return nil, err
	}
	p.ready = newReadiness(p.sources)
	if err := p.listen(ctx); err != nil {
		p.sources.closeAll()
		return nil, err
	}
	return p, nil
}

// listen makes the servers. The ports are taken now: what is wrong with them is said at
// once.
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

// kindsOfControlPlanes is how many types a control plane may ask for by MCP.
const kindsOfControlPlanes = 100

// connect makes what becomes of the sources.
func (p *plane) connect() {
	configs := p.sources.configs
	p.policies = traffic.New(configs, traffic.Options{Domain: p.settings.domain, Logger: p.log})
	// Files that Gateways and DestinationRules name are read by the proxies that have
	// them: see package secrets for keys that the control plane serves.
	p.secrets = secrets.New(secrets.Options{Logger: p.log})
	p.server = ads.New(p.registries, ads.Options{
		Logger: p.log, Observer: p.metrics, Proxy: p.xds.proxy(),
		Providers: []ads.Provider{mcp.NewProvider(configs, mcp.ProviderOptions{ControlPlanes: p.settings.controlPlaneIDs()}), p.policies}, Generators: []ads.Generator{p.secrets},
		Configs: func() ads.ConfigReader { return configs },
		Limits:  ads.Limits{Types: kindsOfControlPlanes},
	})
	for _, add := range p.sources.registries {
		p.registries.AddRegistry(add)
	}
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
}

// run starts everything in the direction of the data, serves when all of it has synced,
// and stops in the other direction when ctx ends, or when a part has failed.
func (p *plane) run(ctx context.Context) error {
	defer p.sources.closeAll()
	life := newLifecycle(p.log, p.settings.patience)
	life.start(part{"admin", p.admin.run})
	life.start(p.sources.parts...)
	life.start(runs("configs", p.sources.configs.Run), runs("registries", p.registries.Run))
	err := p.serve(ctx, life)
	p.ready.enter(stopping)
	if stopped := life.stop(); err == nil {
		err = stopped
	}
	return err
}

// stillWaiting is how often the log says which sources have not been read.
const stillWaiting = 10 * time.Second

// waitForSources reports whether everything was read before ctx ended; the error is that of a part that has failed.
func (p *plane) waitForSources(ctx context.Context, life *lifecycle) (bool, error) {
	p.log.Info("reading sources", slog.String("admin", p.admin.listener.Addr().String()))
	synced := make(chan error, 1)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { synced <- configstore.WaitForSync(waiting, p.sources.configs, p.registries) }()
	tick := time.NewTicker(stillWaiting)
	defer tick.Stop()
	for {
		select {
		case err := <-life.failed:
			return false, err
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
			p.log.Warn("still reading sources", slog.Any("missing", p.ready.missing()))
		case err := <-synced:
			return err == nil, nil // an error says that ctx has ended
		}
	}
}

// serve returns when ctx has ended and clients had the time to go elsewhere, or with the
// error of a part that has failed.
func (p *plane) serve(ctx context.Context, life *lifecycle) error {
	if read, err := p.waitForSources(ctx, life); !read {
		return err
	}
	p.ready.enter(pushing)
	life.start(
		runs("keys of tokens", p.policies.Run),
		runs("secrets", func(stop <-chan struct{}) { p.secrets.Run(p.server, stop) }),
		part{"xds", func(stop <-chan struct{}) error { return p.xds.run(p.server, stop) }},
	)
	if err := p.server.Flush(ctx); err != nil {
		return fmt.Errorf("push what there is: %w", err)
	}
	p.ready.enter(serving)
	p.log.Info("serving", slog.String("xds", p.xds.listener.Addr().String()), slog.String("admin", p.admin.listener.Addr().String()),
		slog.Int("services", len(p.registries.Services())))
	select {
	case err := <-life.failed:
		return err
	case <-ctx.Done():
	}
	p.ready.enter(stopping)
	timer := time.NewTimer(p.settings.drain)
	defer timer.Stop()
	<-timer.C
	return nil
}
