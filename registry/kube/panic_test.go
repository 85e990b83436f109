// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// explosive is an updater that records each call and then panics.
type explosive struct {
	xdsupdate.Discard
	calls []string
}

func (e *explosive) note(call string) {
	e.calls = append(e.calls, call)
	panic(call)
}

func (e *explosive) SvcUpdate(_ xdsupdate.ShardKey, h registry.Hostname, _ string, _ registry.Event) {
	e.note("SvcUpdate " + string(h))
}

func (e *explosive) EDSUpdate(_ xdsupdate.ShardKey, h registry.Hostname, _ string, _ []*registry.Endpoint) {
	e.note("EDSUpdate " + string(h))
}
func (e *explosive) ConfigUpdate(*xdsupdate.PushRequest)         { e.note("ConfigUpdate") }
func (e *explosive) ProxyUpdate(_ registry.ClusterID, ip string) { e.note("ProxyUpdate " + ip) }
func (e *explosive) UpdateBatch(func(xdsupdate.XDSUpdater))      { e.note("UpdateBatch") }

// A panic of the updater or of a handler costs that call.
func TestPanic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	updater := &explosive{}
	k := kube.New(nil, updater, kube.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var seen []string
	k.SubscribeServices(func(_, _ *registry.Service, _ registry.Event) { panic("handler") })
	k.SubscribeServices(func(_, s *registry.Service, _ registry.Event) { seen = append(seen, string(s.Hostname)) })
	k.Put(shopService("ns"))
	k.Put(readyPod("ns", "p1", "10.1.0.1"))
	k.Put(shopSlice("ns", "10.1.0.1"))
	k.Drain()
	const host = "shop.ns.svc.cluster.local"
	want := []string{"UpdateBatch", "SvcUpdate " + host, "EDSUpdate " + host, "ConfigUpdate", "ProxyUpdate 10.1.0.1"}
	if !slices.Equal(updater.calls, want) {
		t.Errorf("calls %q, want %q", updater.calls, want)
	}
	if !slices.Equal(seen, []string{host}) || len(k.InstancesByPort(k.GetService(host), 0)) != 1 {
		t.Errorf("handlers saw %q, the registry shows %v", seen, k.Services())
	}
	for _, text := range append(want, "handler") {
		if n := strings.Count(log.String(), `error="panic: `+text+`"`); n != 1 {
			t.Errorf("%d records of %s, want 1", n, text)
		}
	}
}

// A second Run panics before it starts anything.
func TestRunTwice(t *testing.T) {
	t.Parallel()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	k := kube.New(client, xdsupdate.Discard{})
	stop := make(chan struct{})
	close(stop)
	k.Run(stop)
	defer func() {
		if got, want := recover(), "kube: Run called twice"; got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	k.Run(make(chan struct{}))
}

// Only the annotation that redirects the traffic of a pod pushes to proxies.
func TestProxyUpdateForRedirection(t *testing.T) {
	t.Parallel()
	updater := &recorder{index: xdsupdate.NewEndpointIndex()}
	k := kube.New(nil, updater)
	for i, step := range []struct {
		annotations map[string]string
		pushed      bool
	}{
		{nil, true},
		{map[string]string{"example.com/a": "1"}, false},
		{map[string]string{"ambient.istio.io/redirection": "enabled"}, true},
		{map[string]string{"ambient.istio.io/redirection": "enabled", "example.com/a": "2"}, false},
		{map[string]string{"ambient.istio.io/redirection": "disabled"}, true},
		{nil, true},
	} {
		p := readyPod("ns", "p1", "10.1.0.1")
		p.Annotations = step.annotations
		k.Put(p)
		k.Drain()
		pushed := slices.ContainsFunc(updater.take(), func(c call) bool { return c.name == callProxyUpdate && c.ip == "10.1.0.1" })
		if pushed != step.pushed {
			t.Errorf("step %d, annotations %v: pushed %t, want %t", i, step.annotations, pushed, step.pushed)
		}
	}
}
