// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/xds"
)

// dial returns a gRPC channel to a target such as "greeter.demo.internal:80", whose endpoints and
// load balancing come from an xDS server. A real program names the server in the file of
// GRPC_XDS_BOOTSTRAP instead.
func dial(xdsServer, target string) (*grpc.ClientConn, error) {
	bootstrap, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri":      xdsServer,
			"channel_creds":   []any{map[string]any{"type": "insecure"}},
			"server_features": []any{"xds_v3"},
		}},
		"node": map[string]any{
			"id":       "sidecar~127.0.0.1~client.demo~demo.svc.cluster.local",
			"locality": map[string]any{"region": "eu", "zone": "a"},
		},
	})
	if err != nil {
		return nil, err
	}
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("xds:///"+target, grpc.WithResolvers(resolver),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// callers are concurrent callers. Each of them calls in a loop.
type callers struct {
	calls, failed atomic.Int64
	// stop ends the calls. A call that stop interrupts does not count as failed.
	stop func()

	mu sync.Mutex
	// counts and waiting are by backend.
	counts   map[string]int
	waiting  map[string]chan struct{}
	firstErr error
}

// startCalls starts n callers, which run until stop.
func startCalls(ctx context.Context, conn grpc.ClientConnInterface, n int) *callers {
	ctx, cancel := context.WithCancel(ctx)
	t := &callers{counts: map[string]int{}, waiting: map[string]chan struct{}{}}
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			for ctx.Err() == nil {
				name, err := who(ctx, conn)
				if ctx.Err() == nil {
					t.record(name, err)
				}
			}
		})
	}
	t.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	return t
}

func (t *callers) record(name string, err error) {
	t.calls.Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failed.Inc()
		if t.firstErr == nil {
			t.firstErr = err
		}
		return
	}
	t.counts[name]++
	if waiting, ok := t.waiting[name]; ok {
		close(waiting)
		delete(t.waiting, name)
	}
}

// next waits for the next response of a backend.
func (t *callers) next(ctx context.Context, name string) error {
	t.mu.Lock()
	waiting, ok := t.waiting[name]
	if !ok {
		waiting = make(chan struct{})
		t.waiting[name] = waiting
	}
	t.mu.Unlock()
	select {
	case <-waiting:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no call reached %s: %w", name, context.Cause(ctx))
	}
}

// err returns the first error of a call.
func (t *callers) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.firstErr
}
