// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilotkit/pilotkit/internal/test/memnet"
)

// Nearly all tests here run in bubbles of testing/synctest, over a network in memory: when server
// and clients are idle, time jumps to the next timer. So a test that waits in vain fails at once,
// however long its time-out is and however busy the machine, and a test that expects no response
// has waited for it when synctest.Wait returns.
//
// Clients with a network of their own (grpc-go's xDS resolver) need real sockets and real time.

// network returns a listener in memory for tests, and a socket for benchmarks, whose
// clients may be other processes.
func network(tb testing.TB) net.Listener {
	tb.Helper()
	if _, ok := tb.(*testing.T); ok {
		return memnet.Listen()
	}
	return listen(tb)
}

func listen(tb testing.TB) net.Listener {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return listener
}

// dialTo returns a connection to a listener; the caller closes it.
func dialTo(tb testing.TB, listener net.Listener) *grpc.ClientConn {
	tb.Helper()
	target, options := listener.Addr().String(), []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if memory, ok := listener.(*memnet.Listener); ok {
		target = "passthrough:memory"
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return memory.Dial(ctx)
		}))
	}
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return conn
}
