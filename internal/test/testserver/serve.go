// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilotkit/pilotkit/internal/test/memnet"
)

// Server is a gRPC server, of any of the several types.
type Server interface {
	Serve(l net.Listener) error
	Stop()
}

// Serve has a server serve, and parts run, until the test ends or stop is called, which may
// be called again. Then the server stops first, and all has ended when stop returns.
func Serve(tb testing.TB, l net.Listener, server Server, parts ...func(stop <-chan struct{})) (stop func()) {
	tb.Helper()
	ended := make(chan struct{})
	var running sync.WaitGroup
	for _, run := range parts {
		running.Go(func() { run(ended) })
	}
	running.Go(func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			tb.Errorf("Serve: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		server.Stop()
		close(ended)
		running.Wait()
	})
	tb.Cleanup(stop)
	return stop
}

// ServeMemory is Serve on a network in memory, with a connection to the server, which is
// closed before that stops.
func ServeMemory(tb testing.TB, server Server, parts ...func(stop <-chan struct{})) (conn *grpc.ClientConn, stop func()) {
	tb.Helper()
	l := memnet.Listen()
	conn, err := grpc.NewClient("passthrough:memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.Dial(ctx) }))
	if err != nil {
		tb.Fatal(err)
	}
	end := Serve(tb, l, server, parts...)
	stop = sync.OnceFunc(func() {
		_ = conn.Close()
		end()
	})
	tb.Cleanup(stop)
	return conn, stop
}
