// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// whoMethod is the only method of backends. It has no input and returns the name of the backend.
const whoMethod = "/demo.Who/Who"

// backend is a small gRPC server that returns its name.
type backend struct {
	name   string
	port   int
	server *grpc.Server
	done   chan struct{}
}

// startBackend serves on a free port of the loopback interface until stop.
func startBackend(ctx context.Context, name string) (*backend, error) {
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &backend{
		name: name, port: lis.Addr().(*net.TCPAddr).Port,
		server: grpc.NewServer(), done: make(chan struct{}),
	}
	b.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "demo.Who", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Who", Handler: b.who}},
	}, b)
	go func() {
		defer close(b.done)
		_ = b.server.Serve(lis) // it returns an error only when it is stopped
	}()
	return b, nil
}

//nolint:revive // the signature is grpc's
func (b *backend) who(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	if err := decode(new(emptypb.Empty)); err != nil {
		return nil, err
	}
	return wrapperspb.String(b.name), nil
}

// stop finishes the calls in progress.
func (b *backend) stop() {
	b.server.GracefulStop()
	<-b.done
}

// who asks a backend for its name.
func who(ctx context.Context, conn grpc.ClientConnInterface) (string, error) {
	var name wrapperspb.StringValue
	err := conn.Invoke(ctx, whoMethod, new(emptypb.Empty), &name, grpc.WaitForReady(true))
	return name.GetValue(), err
}
