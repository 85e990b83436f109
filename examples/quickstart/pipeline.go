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

// pipeline is a control plane: a directory becomes a store, the store's
// ServiceEntries become services, and services become, under the store's traffic
// policies, what xDS clients get.
type pipeline struct {
	store      *memory.Store
	configs    *memory.Controller
	files      *file.Source
	services   *serviceentry.Controller
	registries *aggregate.Controller
	policies   *traffic.Policies
	server     *ads.Server
}

// newPipeline wires the parts together. Nothing runs yet.
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

// start serves. It first reads the directory and lets the registry see all of it:
// what is known when the server starts is the first that clients are sent.
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
	if err := p.server.Flush(ctx); err != nil { // the report is about what was pushed
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
	running.Go(func() { _ = server.Serve(lis) }) // ends when stopped
	return &serving{address: lis.Addr().String(), stop: sync.OnceFunc(func() {
		server.Stop()
		close(stop)
		running.Wait()
	})}, nil
}
