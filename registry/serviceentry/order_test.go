// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"strings"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Configs alone are not in a root before the services of an earlier batch, which waits for another goroutine.
func TestConfigsBehindABatch(t *testing.T) {
	store := memory.NewController(memory.Make(istio.Schemas()))
	var root *xdsupdate.Root
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{
		Capture: func(_ *xdsupdate.PushRequest, now *xdsupdate.Root) bool {
			root = now
			return true
		},
	})
	configs := xdsupdate.FollowConfigs(pusher, store, []configstore.GroupVersionKind{istio.VirtualService}, nil)
	var busy atomic.Bool
	asked, answer := make(chan struct{}), make(chan struct{})
	c := serviceentry.New(store, pusher, serviceentry.Options{NetworkOf: func(string, registry.Labels) string {
		if busy.Swap(false) {
			close(asked)
			<-answer
		}
		return ""
	}})
	apply := func(text string) {
		t.Helper()
		if err := manifest.Apply(store, []byte(text), manifest.Options{}); err != nil {
			t.Fatal(err)
		}
		store.Drain()
	}
	const entry = `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: NAME, namespace: ns},
		spec: {hosts: [NAME.example.com], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.1}]}}`
	apply(strings.ReplaceAll(entry, "NAME", "a"))
	busy.Store(true)
	var handling sync.WaitGroup
	handling.Go(func() { c.UpdateMesh(serviceentry.Mesh{TrustDomain: "example.com"}) })
	<-asked
	apply(strings.ReplaceAll(entry, "NAME", "b"))
	apply(`{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: b, namespace: ns},
		spec: {hosts: [b.example.com], http: [{route: [{destination: {host: b.example.com}}]}]}}`)
	expect := func(when string, want int) {
		t.Helper()
		if err := pusher.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for range root.ConfigsSince(nil, configs) {
			n++
		}
		services, _ := c.ServicesAt(c, root)
		if has := services.Get("b.example.com") != nil; n != want || has != (want > 0) {
			t.Errorf("%s the root has %d VirtualServices, want %d, and their service: %t", when, n, want, has)
		}
	}
	expect("while the registry is busy,", 0)
	close(answer)
	handling.Wait()
	expect("afterwards", 1)
}

// Configs do not overtake the first batch of a registry that joins later: the last state counts.
func TestConfigsBehindAJoin(t *testing.T) {
	store := memory.NewController(memory.Make(istio.Schemas()))
	var root *xdsupdate.Root
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{
		Capture: func(_ *xdsupdate.PushRequest, now *xdsupdate.Root) bool {
			root = now
			return true
		},
	})
	apply := func(version string) {
		t.Helper()
		if err := manifest.Apply(store, []byte(`{apiVersion: networking.istio.io/v1, kind: VirtualService,
			metadata: {name: a, namespace: ns, labels: {version: `+version+`}}, spec: {hosts: [a], http: [{route: [{destination: {host: a}}]}]}}`),
			manifest.Options{}); err != nil {
			t.Fatal(err)
		}
		store.Drain()
	}
	if err := manifest.Apply(store, []byte(`{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: a, namespace: ns},
		spec: {hosts: [a], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}]}}`), manifest.Options{}); err != nil {
		t.Fatal(err)
	}
	apply("first")
	configs := xdsupdate.FollowConfigs(pusher, store, []configstore.GroupVersionKind{istio.VirtualService}, nil)
	writer, join := xdsupdate.NewWriters(pusher).NewHeld()
	serviceentry.New(store, writer)
	apply("second")
	join(&xdsupdate.Update{})
	if err := pusher.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, config := range root.ConfigsSince(nil, configs) {
		if got := config.Labels["version"]; got != "second" {
			t.Errorf("the root has the %s state", got)
		}
	}
}
