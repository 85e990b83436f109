// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// TestServe: all has ended when stop returns, and its address can be listened on again.
func TestServe(t *testing.T) {
	l := testserver.Listen(t, "")
	ended := false
	stop := testserver.Serve(t, l, grpc.NewServer(), func(stop <-chan struct{}) {
		<-stop
		ended = true
	})
	stop()
	if !ended {
		t.Error("a part runs on")
	}
	stop()
	again := testserver.Listen(t, l.Addr().String())
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestFreePorts: the ports are distinct, and outside of the range that systems assign to
// connections.
func TestFreePorts(t *testing.T) {
	ports := testserver.FreePorts(t, "127.0.0.1", 50)
	slices.Sort(ports)
	if len(slices.Compact(slices.Clone(ports))) != 50 || ports[0] < 10_000 || ports[49] >= 30_000 {
		t.Errorf("ports %v", ports)
	}
}

// TestServeMemory: a call over the connection reaches the server, until stop is called.
func TestServeMemory(t *testing.T) {
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	conn, stop := testserver.ServeMemory(t, server)
	check := func() error {
		_, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		return err
	}
	if err := check(); err != nil {
		t.Error(err)
	}
	stop()
	if check() == nil {
		t.Error("a call is answered after stop")
	}
}
