// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

// backend is a health service that says its name in a header, so that clients
// need no protocol buffers of their own: the request and the response are bytes.
type backend struct {
	healthpb.UnimplementedHealthServer
	name string
	port uint32
}

// startBackend serves on a free port of 127.0.0.1 until the test ends.
func startBackend(t *testing.T, name string) *backend {
	t.Helper()
	listener := testserver.Listen(t, "127.0.0.1:0")
	b := &backend{name: name, port: testserver.Port(listener)}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, b)
	testserver.Serve(t, listener, server)
	return b
}

// Check answers with the name of the backend.
func (b *backend) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs("backend", b.name)); err != nil {
		return nil, err
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// at returns the backend as an endpoint of a ServiceEntry with one of its
// addresses, 127.0.0.1 or a name of it.
func (b *backend) at(address string) *networking.WorkloadEntry {
	return &networking.WorkloadEntry{Address: address, Ports: map[string]uint32{"grpc": b.port}}
}

// entry returns the backend as an endpoint of a STATIC ServiceEntry.
func (b *backend) entry() *networking.WorkloadEntry { return b.at("127.0.0.1") }
