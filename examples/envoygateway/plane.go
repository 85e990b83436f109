// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// plane is a control plane for gateways. The folder config of its directory has the services and
// policies that it serves to Envoys, the folder certificates the secrets.
type plane struct {
	configs    *memory.Controller
	files      *file.Source
	registries *aggregate.Controller
	policies   *traffic.Policies
	secrets    *secrets.Provider
	server     *ads.Server
}

// certificateFiles returns the files of the certificate of the Gateway's credential "edge".
func certificateFiles(dir string) secrets.Files {
	folder := filepath.Join(dir, "certificates")
	return secrets.Files{Certificate: filepath.Join(folder, "edge.crt"), Key: filepath.Join(folder, "edge.key")}
}

// newPlane wires the parts together. It runs nothing yet.
//
// The server trusts the claims of proxies. A server that others can reach must authenticate proxies
// first, and return their identity in ads.Options.Proxy, because the namespace of a proxy decides
// which keys it gets.
func newPlane(dir string) *plane {
	p := &plane{}
	store := memory.Make(istio.Schemas())
	p.configs = memory.NewController(store)
	p.files = file.New(filepath.Join(dir, "config"), store, file.Options{})
	p.policies = traffic.New(p.configs)
	p.secrets = secrets.New(p.configs, secrets.Options{
		Files: map[secrets.Name]secrets.Files{
			{Namespace: "ingress", Name: envoy.CredentialName("edge")}: certificateFiles(dir),
		},
		Interval: time.Second, // the files are read at this interval
	})
	p.registries = aggregate.NewController()
	p.server = ads.New(p.registries, ads.Options{Providers: []ads.Provider{p.policies, p.secrets}})
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(p.configs, updater)
	})
	return p
}

// start serves until stop. It reads the directory first, so that the first responses to proxies are
// complete.
func (p *plane) start(ctx context.Context) (address string, stop func(), err error) {
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	if err := p.files.Reload(); err != nil {
		lis.Close()
		return "", nil, fmt.Errorf("read the directory: %w", err)
	}
	p.configs.Drain()
	server := grpc.NewServer(ads.ServerOptions()...)
	p.server.Register(server)
	ended := make(chan struct{})
	var running sync.WaitGroup
	for _, run := range []func(<-chan struct{}){p.configs.Run, p.registries.Run, p.server.Run, p.files.Run, p.secrets.Run} {
		running.Go(func() { run(ended) })
	}
	running.Go(func() { _ = server.Serve(lis) }) // it returns when it is stopped
	return lis.Addr().String(), sync.OnceFunc(func() {
		server.Stop()
		close(ended)
		running.Wait()
	}), nil
}
