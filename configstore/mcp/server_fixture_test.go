// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"maps"
	"net"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// meshConfig is the type that a stock Istio requests in addition to its kinds.
const meshConfig = "core/v1alpha1/MeshConfig"

// stockTypes are the types that a stock Istio asks for.
func stockTypes() []string {
	out := []string{meshConfig}
	for _, schema := range istio.Schemas().All() {
		out = append(out, typeURL(schema.GroupVersionKind))
	}
	return out
}

// exporter is a store, and a Server of its cache on a network in memory.
type exporter struct {
	*memory.Store
	tb       testing.TB
	cache    *memory.Controller
	server   *Server
	listener *memnet.Listener
	at       atomic.Pointer[memnet.Listener] // the listener, for what dials at any time
	stop     func()                          // ends the server and waits for it
}

// export returns a running exporter, which pushes without delay. Tests call it in bubbles of
// testing/synctest.
func export(tb testing.TB, o ServerOptions, objects ...configstore.Config) *exporter {
	tb.Helper()
	store := memory.Make(istio.Schemas())
	e := &exporter{Store: store, tb: tb, cache: memory.NewController(store), listener: memnet.Listen()}
	for _, c := range objects {
		e.create(c)
	}
	o.ADS.Debounce.After = -1
	e.server = NewServer(e.cache, o)
	e.cache.Drain() // it has synced, so that the server serves at once
	e.run()
	if _, inBubble := tb.(*testing.T); inBubble {
		synctest.Wait()
	}
	return e
}

// run runs the cache and the server until the test ends.
func (e *exporter) run() {
	e.at.Store(e.listener)
	e.stop = serveOn(e.tb, e.listener, e.server.Register, e.cache.Run, e.server.Run)
}

// serveOn serves a gRPC service, and runs the given functions, until stop is called or the test
// ends.
func serveOn(tb testing.TB, listener net.Listener, register func(grpc.ServiceRegistrar), run ...func(<-chan struct{})) (stop func()) {
	tb.Helper()
	server := grpc.NewServer()
	register(server)
	return testserver.Serve(tb, listener, server, run...)
}

// settle returns when everything that the store has is with the clients, and answered. It
// is for bubbles.
func (e *exporter) settle() {
	e.tb.Helper()
	if err := e.cache.Flush(e.tb.Context()); err != nil {
		e.tb.Fatal(err)
	}
	if err := e.server.Flush(e.tb.Context()); err != nil {
		e.tb.Fatal(err)
	}
	synctest.Wait()
}

func (e *exporter) create(c configstore.Config) {
	e.tb.Helper()
	if _, err := e.Create(c); err != nil {
		e.tb.Fatal(err)
	}
}

func (e *exporter) update(c configstore.Config) {
	e.tb.Helper()
	if _, err := e.Update(c); err != nil {
		e.tb.Fatal(err)
	}
}

func (e *exporter) remove(kind configstore.GroupVersionKind, namespace, name string) {
	e.tb.Helper()
	if err := e.Delete(kind, name, namespace, nil); err != nil {
		e.tb.Fatal(err)
	}
}

// status returns the server's status of the only client of an ID.
func (e *exporter) status(id string) ads.ProxyStatus {
	e.tb.Helper()
	var found []ads.ProxyStatus
	for _, p := range e.server.Proxies() {
		if p.ID == id {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		e.tb.Fatalf("%d streams of %s", len(found), id)
	}
	return found[0]
}

// contents are configs by type URL and the name under which they travel.
type contents map[string]map[string]configstore.Config

// wanted returns the expected content of a client of a revision, for all kinds of the store.
func (e *exporter) wanted(revision string) contents {
	out := make(contents)
	for _, schema := range e.Schemas().All() {
		kind := schema.GroupVersionKind
		out[typeURL(kind)] = make(map[string]configstore.Config)
		for _, c := range e.List(kind, "") {
			if rev := c.Labels["istio.io/rev"]; rev == "" || revision == "" || rev == revision {
				out[typeURL(kind)][c.Namespace+"/"+c.Name] = travelled(c)
			}
		}
	}
	return out
}

// travelled returns the part of a config that is transferred.
func travelled(c *configstore.Config) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: c.GroupVersionKind, Name: c.Name, Namespace: c.Namespace,
			Labels: maps.Clone(c.Labels), Annotations: maps.Clone(c.Annotations), CreationTimestamp: c.CreationTimestamp.UTC(),
		},
		Spec: c.Spec,
	}
}

func same(tb testing.TB, what string, got, want any) {
	tb.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform(), cmp.AllowUnexported(gotResponse{})); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
