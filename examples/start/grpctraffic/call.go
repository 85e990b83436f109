// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// backend serves the only method, which returns its version, on a free port until stop is called.
func backend(ctx context.Context, version string) (port int, stop func()) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	server := grpc.NewServer()
	answer := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		return wrapperspb.String(version), decode(new(emptypb.Empty))
	}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "shop.Cart", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Version", Handler: answer}},
	}, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it returns when it is stopped
	}()
	return listener.Addr().(*net.TCPAddr).Port, func() {
		server.Stop()
		<-ended
	}
}

// ask returns the version that answers.
func ask(ctx context.Context, conn grpc.ClientConnInterface) (string, error) {
	var version wrapperspb.StringValue
	err := conn.Invoke(ctx, "/shop.Cart/Version", new(emptypb.Empty), &version, grpc.WaitForReady(true))
	return version.GetValue(), err
}

// dial returns a channel whose routes and endpoints come from an xDS server. A real program names
// the server in the file of GRPC_XDS_BOOTSTRAP, and needs no resolver of its own.
func dial(xdsServer, target string) (*grpc.ClientConn, error) {
	bootstrap, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri": xdsServer, "channel_creds": []any{map[string]any{"type": "insecure"}}, "server_features": []any{"xds_v3"},
		}},
		"node": map[string]any{"id": "sidecar~127.0.0.1~web.shop~shop.svc.cluster.local"},
	})
	check(err)
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	check(err)
	return grpc.NewClient("xds:///"+target, grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
}
