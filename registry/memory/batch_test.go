// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"slices"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestPushReadsARegistryBetweenChanges: while several goroutines change a registry, the services and
// the endpoints in a push are of one state.
func TestPushReadsARegistryBetweenChanges(t *testing.T) {
	const host, namespace = "a.example.com", "ns"
	var r *memory.Registry
	var pushes atomic.Int64
	var root *xdsupdate.Root
	p := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {
		services, exact := r.ServicesAt(r, root)
		n := root.Endpoints().Service(host, namespace).Len()
		if !exact || services.Get(host) == nil && n > 0 {
			t.Errorf("the registry has the service %v (exact: %t) with %d endpoints", services.Get(host), exact, n)
		}
		pushes.Inc()
	}, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}, Capture: func(_ *xdsupdate.PushRequest, now *xdsupdate.Root) bool {
		root = now
		return true
	}})
	r = memory.New(memory.Options{Updater: p})
	stop := make(chan struct{})
	var run, writers sync.WaitGroup
	run.Go(func() { p.Run(stop) })
	for _, address := range []string{"1.1.1.1", "2.2.2.2", "3.3.3.3"} {
		writers.Go(func() {
			for i := 0; pushes.Load() < 30 && i < 100_000; i++ {
				if err := r.SetService(service(host, namespace, registry.ClientSideLB)); err != nil {
					t.Error(err)
				}
				_ = r.SetEndpoints(host, namespace, []*registry.Endpoint{endpoint(address)}) // another one may remove it
				if i%2 == 0 {
					_ = r.RemoveService(host, namespace)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	run.Wait()
	if pushes.Load() == 0 {
		t.Error("nothing was pushed")
	}
}

// TestHandlersCanFlush: handlers run after the batch, so a handler may wait for the push of the
// change that it was called for.
func TestHandlersCanFlush(t *testing.T) {
	var names []string
	p := xdsupdate.NewPusher(func(req *xdsupdate.PushRequest) { names = append(names, req.Keys()[0].Name) })
	r := memory.New(memory.Options{Updater: p})
	r.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) {
		must(t, p.Flush(t.Context()))
	})
	must(t, r.SetService(service("a.example.com", "ns", registry.ClientSideLB)))
	if !slices.Equal(names, []string{"a.example.com"}) {
		t.Errorf("pushed %q", names)
	}
}
