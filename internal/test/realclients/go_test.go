// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/xds"
)

// What all clients do alike: how long a call may take, and the pause between two.
const (
	callTimeout = 30 * time.Second
	callPause   = time.Millisecond
)

// startGo starts grpc-go's xDS client in this process.
func startGo(t *testing.T, bootstrap []byte, target string) (*feed, func(mark string) error) {
	t.Helper()
	return startGoWith(t, bootstrap, target, callPause)
}

// startGoWith is startGo with another pause between two calls.
func startGoWith(t *testing.T, bootstrap []byte, target string, pause time.Duration) (*feed, func(mark string) error) {
	t.Helper()
	builder, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(target, grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	out, marks := newFeed(), make(chan string, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { callGo(ctx, healthpb.NewHealthClient(conn), pause, out, marks) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		_ = conn.Close()
	})
	return out, func(mark string) error {
		marks <- mark
		return nil
	}
}

// callGo calls until ctx ends.
func callGo(ctx context.Context, client healthpb.HealthClient, pause time.Duration, out *feed, marks <-chan string) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	out.add(outcome{Mark: startMark})
	for {
		select {
		case <-ctx.Done():
			out.end(errors.New("the client was stopped"))
			return
		case mark := <-marks:
			out.add(outcome{Mark: mark})
			continue
		case <-tick.C:
		}
		o := callOnce(ctx, client)
		if ctx.Err() == nil {
			out.add(o)
		}
	}
}

func callOnce(ctx context.Context, client healthpb.HealthClient) outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var header metadata.MD
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{Backend: header.Get("backend")[0]}
}
