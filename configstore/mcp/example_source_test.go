// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/mcp"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
)

// A store follows the configs of another control plane, which here is a Server.
func ExampleNewSource() {
	stop := make(chan struct{})
	var running sync.WaitGroup
	listener, end := serveOne(stop, &running)
	conn, err := grpc.NewClient("passthrough:server", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.Dial(ctx) }))
	if err != nil {
		panic(err)
	}

	store := memory.Make(istio.Schemas())
	source := mcp.NewSource(conn, store)
	running.Go(func() { source.Run(stop) })
	if err := configstore.WaitForSync(context.Background(), source); err != nil {
		panic(err)
	}
	for _, c := range store.List(istio.ServiceEntry, "") {
		fmt.Println(c.Key().Object(), "is stored, stale:", source.Status().Stale())
	}

	close(stop)
	_ = conn.Close()
	end()
	running.Wait()
	// Output: ServiceEntry shop/db is stored, stale: false
}

// serveOne serves one object.
func serveOne(stop <-chan struct{}, running *sync.WaitGroup) (listener *memnet.Listener, end func()) {
	configs := memory.NewController(memory.Make(istio.Schemas()))
	if _, err := configs.Create(configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: "db", Namespace: "shop"},
		Spec: &networking.ServiceEntry{
			Hosts: []string{"db.example.com"}, Resolution: networking.ServiceEntry_DNS,
			Ports: []*networking.ServicePort{{Number: 5432, Name: "tcp", Protocol: "TCP"}},
		},
	}); err != nil {
		panic(err)
	}
	server, grpcServer := mcp.NewServer(configs), grpc.NewServer()
	server.Register(grpcServer)
	listener = memnet.Listen()
	running.Go(func() { configs.Run(stop) })
	running.Go(func() { server.Run(stop) })
	running.Go(func() { _ = grpcServer.Serve(listener) })
	return listener, grpcServer.Stop
}
