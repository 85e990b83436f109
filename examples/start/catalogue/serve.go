// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"os"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// serve serves xDS on an address until ctx ends or a part fails. The registries run the bridge, which
// lists the catalogue; clients are served when its first list was accepted.
func serve(ctx context.Context, address string, registries *aggregate.Controller, server *ads.Server) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	server.Register(grpcServer)
	push := configstore.Runs("pushes", server.Run, nil)
	push.AfterSync = true // the first push has everything
	return (&configstore.Group{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Parts: []configstore.Part{
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
