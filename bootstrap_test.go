// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"context"
	"log/slog"
	"net"
	"os"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	services "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// bootstrap serves ServiceEntries, and the services of a registry in memory, until ctx ends.
func bootstrap(ctx context.Context, listener net.Listener) error {
	store := memory.Make(istio.Schemas())
	configs := memory.NewController(store)

	registries := aggregate.NewController()
	policies := traffic.New(configs)
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{policies}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(configs, updater)
	})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return services.New(services.Options{Cluster: "east", Updater: updater})
	})

	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	server.Register(grpcServer)
	push := configstore.Runs("pushes", server.Run, nil)
	push.AfterSync = true // the first push has everything
	return (&configstore.Group{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Parts: []configstore.Part{
		configstore.Runs("configs", configs.Run, configs),
		configstore.Runs("registries", registries.Run, registries),
		push,
		{Name: "xds", AfterSync: true, Run: func(stop <-chan struct{}) error {
			go func() {
				<-stop
				grpcServer.Stop() // GracefulStop would wait for the streams of clients, which do not end
			}()
			return grpcServer.Serve(listener)
		}},
	}}).Run(ctx)
}
