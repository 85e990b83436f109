// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// testTimeout bounds waits that succeed at once unless something is broken.
const testTimeout = 2 * time.Minute

const (
	ordersCluster  = "outbound|80||orders.demo.internal"
	greeterCluster = "outbound|80||greeter.demo.internal"
	ordersTarget   = "orders.demo.internal:80"
)

// mesh is a control plane that serves a directory, with backends behind it.
type mesh struct {
	t        *testing.T
	dir      string
	pipeline *pipeline
	address  string
	backends map[string]*backend
}

// newMesh serves a directory with a service greeter on backend one, and a service orders that
// selects WorkloadEntries. There is one WorkloadEntry, on backend one.
func newMesh(t *testing.T) *mesh {
	t.Helper()
	m := &mesh{t: t, dir: t.TempDir(), backends: map[string]*backend{}}
	for _, name := range []string{"one", "two", "three"} {
		b, err := startBackend(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.stop)
		m.backends[name] = b
	}
	m.write("services.yaml", `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: greeter, namespace: demo}
spec:
  hosts: [greeter.demo.internal]
  ports: [{number: 80, name: grpc, protocol: GRPC}]
  resolution: STATIC
  endpoints:
  - {address: 127.0.0.1, ports: {grpc: `+m.port("one")+`}}
---
apiVersion: networking.istio.io/v1alpha3
kind: ServiceEntry
metadata: {name: orders, namespace: demo}
spec:
  hosts: [orders.demo.internal]
  ports: [{number: 80, name: grpc, protocol: GRPC}]
  resolution: STATIC
  workloadSelector: {labels: {app: orders}}
`)
	m.writeWorkload("orders-1", "one")
	m.pipeline = newPipeline(m.dir, slog.New(slog.DiscardHandler))
	s, err := m.pipeline.start(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	m.address = s.address
	return m
}

func (m *mesh) port(backend string) string { return strconv.Itoa(m.backends[backend].port) }

// write replaces a file of the directory as most programs do, by a rename.
func (m *mesh) write(name, text string) {
	m.t.Helper()
	temporary := filepath.Join(m.dir, "."+name+".new")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(m.dir, name)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mesh) writeWorkload(name, backend string) {
	m.t.Helper()
	m.write(name+".yaml", workload(name, "address: 127.0.0.1", m.port(backend)))
}

func workload(name, address, port string) string {
	return `apiVersion: networking.istio.io/v1beta1
kind: WorkloadEntry
metadata: {name: ` + name + `, namespace: demo}
spec:
  ` + address + `
  ports: {grpc: ` + port + `}
  labels: {app: orders}
`
}

func (m *mesh) remove(name string) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.dir, name)); err != nil {
		m.t.Fatal(err)
	}
}

// catchUp returns when the current content of the directory has been read and sent to the streams.
func (m *mesh) catchUp(ctx context.Context) {
	m.t.Helper()
	if err := m.pipeline.files.Reload(); err != nil {
		m.t.Fatal(err)
	}
	if err := m.pipeline.configs.Flush(ctx); err != nil {
		m.t.Fatal(err)
	}
	if err := m.pipeline.server.Flush(ctx); err != nil {
		m.t.Fatal(err)
	}
}

// stream opens a raw ADS stream that is subscribed to the load assignments of
// both services, and waits until it has them.
func (m *mesh) stream(ctx context.Context, delta bool) *xdstest.Client {
	m.t.Helper()
	conn, err := grpc.NewClient(m.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { conn.Close() })
	client := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: delta})
	m.t.Cleanup(client.Close)
	if err := client.Connect(ctx); err != nil {
		m.t.Fatal(err)
	}
	if err := client.Subscribe(envoy.LoadAssignmentType, ordersCluster, greeterCluster); err != nil {
		m.t.Fatal(err)
	}
	for seen := 0; seen < 2; {
		r, err := client.Next(ctx)
		if err != nil {
			m.t.Fatal(err)
		}
		seen += len(r.Resources)
	}
	return client
}

// expectOrders fails unless the next response of a stream has exactly the load assignment of
// orders.
func expectOrders(t *testing.T, ctx context.Context, client *xdstest.Client, what string) {
	t.Helper()
	r, err := client.Next(ctx)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if r.TypeURL != envoy.LoadAssignmentType || !slices.Equal(r.Names(), []string{ordersCluster}) || len(r.Removed) > 0 {
		t.Fatalf("%s: got %s %v, removed %v; want only %s", what, r.TypeURL, r.Names(), r.Removed, ordersCluster)
	}
}

// TestEndpointsFollowFiles moves endpoints through files while gRPC calls and raw streams continue:
// calls follow and none fails, and the streams get exactly the resource that changed.
func TestEndpointsFollowFiles(t *testing.T) {
	m := newMesh(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	sotw, delta := m.stream(ctx, false), m.stream(ctx, true)
	conn, err := dial(m.address, ordersTarget)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	calls := startCalls(ctx, conn, 4)
	defer calls.stop()
	answers := func(backend string) {
		t.Helper()
		if err := calls.next(ctx, backend); err != nil {
			t.Fatalf("%v (calls so far: %d, first error: %v)", err, calls.calls.Load(), calls.err())
		}
	}
	changed := func(what string) {
		t.Helper()
		expectOrders(t, ctx, sotw, "SotW, "+what)
		expectOrders(t, ctx, delta, "delta, "+what)
	}

	answers("one")
	m.writeWorkload("orders-2", "two")
	answers("two")
	changed("endpoint added")

	m.writeWorkload("orders-2", "three")
	answers("three")
	changed("endpoint moved")

	m.remove("orders-1.yaml")
	changed("endpoint removed")
	for inARow := 0; inARow < 100; inARow++ {
		name, err := who(ctx, conn)
		if err != nil {
			t.Fatal(err)
		}
		if name != "three" {
			inARow = 0
		}
	}

	calls.stop()
	if n := calls.failed.Load(); n > 0 {
		t.Errorf("%d of %d calls failed: %v", n, calls.calls.Load(), calls.err())
	}
	t.Logf("%d calls, none failed", calls.calls.Load())
}

// TestBadEditChangesNothing breaks a file in two ways: clients keep their resources, the error
// names the place, and the repair is served.
func TestBadEditChangesNothing(t *testing.T) {
	m := newMesh(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	sotw, delta := m.stream(ctx, false), m.stream(ctx, true)
	conn, err := dial(m.address, ordersTarget)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, bad := range []struct{ name, text, want string }{
		{"unknown field", workload("orders-1", "adress: 127.0.0.1", m.port("one")), "adress"},
		{"invalid value", workload("orders-1", "address: 127.0.0.1", "70000"), "70000"},
		{"half a file", "apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: ord", "orders-1.yaml"},
	} {
		m.write("orders-1.yaml", bad.text)
		m.catchUp(ctx)
		errs := m.pipeline.files.Errors()
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), bad.want) || !strings.HasSuffix(errs[0].File, "orders-1.yaml") {
			t.Errorf("%s: reported %v, want one error in orders-1.yaml that mentions %q", bad.name, errs, bad.want)
		}
		if name, err := who(ctx, conn); err != nil || name != "one" {
			t.Errorf("%s: the call reached %q, %v; want one", bad.name, name, err)
		}
	}

	m.writeWorkload("orders-1", "two")
	m.catchUp(ctx)
	if errs := m.pipeline.files.Errors(); len(errs) > 0 {
		t.Errorf("after the repair: %v", errs)
	}
	// The next response is that of the repair, because the bad edits caused none.
	expectOrders(t, ctx, sotw, "SotW, repaired")
	expectOrders(t, ctx, delta, "delta, repaired")
	calls := startCalls(ctx, conn, 1)
	defer calls.stop()
	if err := calls.next(ctx, "two"); err != nil {
		t.Error(err)
	}
}
