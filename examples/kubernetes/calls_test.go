// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// patience bounds waits that succeed at once unless something is broken.
const patience = 60 * time.Second

// backends are gRPC servers on the loopback interface, by their addresses in the cluster. The
// addresses differ, because the API server rejects loopback addresses in EndpointSlices.
type backends map[string]string

// startBackends starts one backend for each address, which answers with it.
func startBackends(t *testing.T, addresses ...string) backends {
	t.Helper()
	b := backends{}
	for _, address := range addresses {
		lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		server.RegisterService(&grpc.ServiceDesc{
			ServiceName: "demo.Who", HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{MethodName: "Who", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				return wrapperspb.String(address), decode(new(emptypb.Empty))
			}}},
		}, nil)
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(lis) }) // It ends when stopped.
		t.Cleanup(func() {
			server.Stop()
			serving.Wait()
		})
		b[address] = lis.Addr().String()
	}
	return b
}

// dial returns a channel to a target that an xDS server resolves.
func (b backends) dial(t *testing.T, xdsServer, target string) *grpc.ClientConn {
	t.Helper()
	bootstrap, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri": xdsServer, "channel_creds": []any{map[string]any{"type": "insecure"}}, "server_features": []any{"xds_v3"},
		}},
		"node": map[string]any{"id": "sidecar~10.9.9.9~client.demo~demo.svc.cluster.local"},
	})
	if err != nil {
		t.Fatal(err)
	}
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///"+target, grpc.WithResolvers(resolver),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			real, ok := b[address]
			if !ok {
				return nil, fmt.Errorf("%s is not the address of a backend", address)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", real)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// caller calls without pause and fails the test if a call fails.
type caller struct {
	t *testing.T

	mu   sync.Mutex
	last map[string]int // how often each backend has answered
	more chan struct{}  // closed with each answer
}

// call starts a caller that ends with the test.
func call(t *testing.T, conn *grpc.ClientConn) *caller {
	t.Helper()
	c := &caller{t: t, last: map[string]int{}, more: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var calling sync.WaitGroup
	for range 4 {
		calling.Go(func() {
			for ctx.Err() == nil {
				var name wrapperspb.StringValue
				err := conn.Invoke(ctx, "/demo.Who/Who", new(emptypb.Empty), &name, grpc.WaitForReady(true))
				if ctx.Err() == nil {
					c.record(name.GetValue(), err)
				}
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		calling.Wait()
	})
	return c
}

func (c *caller) record(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.t.Errorf("a call has failed: %v", err)
	}
	c.last[name]++
	close(c.more)
	c.more = make(chan struct{})
}

// expect waits until exactly these backends answer: each of them has, and for a
// hundred calls no other.
func (c *caller) expect(names ...string) {
	c.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	for begin := c.counts(); ; {
		c.mu.Lock()
		more := c.more
		c.mu.Unlock()
		select {
		case <-more:
		case <-timer.C:
			c.t.Fatalf("%v do not answer alone; answers so far: %v", names, c.counts())
		}
		now, total, answered := c.counts(), 0, 0
		foreign := false
		for name, n := range now {
			n -= begin[name]
			total += n
			foreign = foreign || n > 0 && !wanted[name]
			if n > 0 && wanted[name] {
				answered++
			}
		}
		if foreign {
			begin = now
		} else if total >= 100 && answered == len(names) {
			return
		}
	}
}

func (c *caller) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.last)
}
