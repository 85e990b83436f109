// SPDX-License-Identifier: Apache-2.0

// Package calls is a client that calls a service by xDS, and the backend that it calls.
package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/xds"
)

// scheme is the scheme of the replicas' address in the bootstrap. xDS clients dial the address like
// any target; a DNS name with several addresses works the same way.
const scheme = "replicas"

// interval is the time between two calls.
const interval = 5 * time.Millisecond

// Client calls a target in a loop.
type Client struct {
	conn *grpc.ClientConn
	// Succeeded and Failed count calls.
	Succeeded, Failed atomic.Int64
	// last is the error of the last failed call.
	last atomic.Error
}

// New returns a client of a target, such as "xds:///echo.example.com:80". The control plane has
// several replicas, given as "host:port". The client connects to the first one that it can reach,
// and to the next one when that fails.
func New(target string, replicas []string) (*Client, error) {
	addresses := resolver.State{}
	for _, replica := range replicas {
		addresses.Addresses = append(addresses.Addresses, resolver.Address{Addr: replica})
	}
	builder := manual.NewBuilderWithScheme(scheme)
	builder.InitialState(addresses)
	resolver.Register(builder)
	bootstrap, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri":      scheme + ":///",
			"channel_creds":   []any{map[string]any{"type": "insecure"}},
			"server_features": []string{"xds_v3"},
		}},
		"node": map[string]any{"id": "sidecar~127.0.0.1~caller.demo~demo.svc.cluster.local"},
	})
	if err != nil {
		return nil, err
	}
	xdsResolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(target, grpc.WithResolvers(xdsResolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn}, nil
}

// Run makes one call after the other until ctx ends.
func (c *Client) Run(ctx context.Context) {
	defer c.conn.Close()
	client := healthpb.NewHealthClient(c.conn)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
		switch {
		case ctx.Err() != nil:
		case err != nil:
			c.last.Store(err)
			c.Failed.Inc()
		default:
			c.Succeeded.Inc()
		}
	}
}

// String describes the calls so far.
func (c *Client) String() string {
	text := fmt.Sprintf("%d calls, %d failed", c.Succeeded.Load()+c.Failed.Load(), c.Failed.Load())
	if err := c.last.Load(); err != nil {
		text += ", the last: " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return text
}

// Backend is the server that clients call.
type Backend struct {
	healthpb.UnimplementedHealthServer
	listener net.Listener
	// Calls is the number of answered calls.
	Calls atomic.Int64
}

// Listen returns a backend that listens on an address. The caller has to call Run.
func Listen(ctx context.Context, address string) (*Backend, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	return &Backend{listener: listener}, err
}

// Address returns "host:port".
func (b *Backend) Address() string { return b.listener.Addr().String() }

// Check implements the health service.
func (b *Backend) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	b.Calls.Inc()
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// Run serves until ctx ends.
func (b *Backend) Run(ctx context.Context) error {
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, b)
	defer context.AfterFunc(ctx, server.Stop)()
	return server.Serve(b.listener)
}
