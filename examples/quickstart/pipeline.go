// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// pipeline is a control plane. A directory fills a store, the store's ServiceEntries become
// services, and xDS clients get the services under the store's traffic policies.
type pipeline struct {
	store      *memory.Store
	configs    *memory.Controller
	files      *file.Source
	services   *serviceentry.Controller
	registries *aggregate.Controller
	policies   *traffic.Policies
	server     *ads.Server
}

// newPipeline wires the parts together. It runs nothing yet.
func newPipeline(dir string, log *slog.Logger) *pipeline {
	p := &pipeline{}
	p.store = memory.Make(istio.Schemas())
	p.configs = memory.NewController(p.store)
	p.files = file.New(dir, p.store, file.Options{Domain: "cluster.local", DefaultNamespace: "default", Logger: log})
	p.registries = aggregate.NewController()
	p.policies = traffic.New(p.configs)
	p.server = ads.New(p.registries, ads.Options{Logger: log, Providers: []ads.Provider{p.policies}})
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		p.services = serviceentry.New(p.configs, updater)
		return p.services
	})
	return p
}

// serving is a pipeline that runs.
type serving struct {
	address string
	stop    func()
}

// start serves. Before that it reads the directory and waits for the registry to process it, so
// that the first responses to clients are complete.
func (p *pipeline) start(ctx context.Context, address string) (*serving, error) {
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := p.files.Reload(); err != nil {
		lis.Close()
		return nil, fmt.Errorf("read the directory: %w", err)
	}
	p.configs.Drain()
	if err := p.server.Flush(ctx); err != nil { // the report describes the pushed state
		lis.Close()
		return nil, err
	}
	server := grpc.NewServer(ads.ServerOptions()...)
	p.server.Register(server)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, run := range []func(<-chan struct{}){p.configs.Run, p.registries.Run, p.server.Run, p.files.Run} {
		running.Go(func() { run(stop) })
	}
	running.Go(func() { _ = server.Serve(lis) }) // it returns when it is stopped
	return &serving{address: lis.Addr().String(), stop: sync.OnceFunc(func() {
		server.Stop()
		close(stop)
		running.Wait()
	})}, nil
}
