// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	services "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

func TestBootstrap(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bootstrap(ctx, listener) }()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the server speaks first: it runs
		t.Error(err)
	}
	conn.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func api(host string) *registry.Service {
	return &registry.Service{
		Hostname: registry.Hostname(host), Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		Attributes: registry.ServiceAttributes{Namespace: "ns"},
	}
}

// configsWith returns a store with a ServiceEntry, and its cache.
func configsWith(t *testing.T) (*memory.Store, *memory.Controller) {
	t.Helper()
	store := memory.Make(istio.Schemas())
	entry := configstore.NewConfig("a", "ns", &networking.ServiceEntry{
		Hosts: []string{"a.example.com"}, Ports: []*networking.ServicePort{{Number: 80, Name: "http"}},
	})
	if _, err := store.Create(entry.Config()); err != nil {
		t.Fatal(err)
	}
	return store, memory.NewController(store)
}

// TestPortedConfigs shows the differences of config stores in docs/porting.md.
func TestPortedConfigs(t *testing.T) {
	store, configs := configsWith(t)
	configs.Drain()
	var events []string
	configs.RegisterEventHandler(istio.ServiceEntry, func(_, curr configstore.Config, event configstore.Event) {
		events = append(events, event.String()+" "+curr.Name)
	})
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(events, want) {
			t.Errorf("%s: events %q, want %q", what, events, want)
		}
		events = nil
	}
	expect("nothing runs")
	configs.Drain()
	expect("a late handler", "add a")
	stored := store.Get(istio.ServiceEntry, "a", "ns")
	if stored != store.Get(istio.ServiceEntry, "a", "ns") {
		t.Error("Get returns copies")
	}
	changed := stored.Clone()
	if _, err := store.Update(changed); err != nil {
		t.Error(err)
	}
	configs.Drain()
	expect("an update without a change")
	changed.ResourceVersion, changed.Labels = "", map[string]string{"team": "shop"}
	if _, err := store.Update(changed); err != nil {
		t.Error(err)
	}
	configs.Drain()
	expect("an update without a version", "update a")

	second, other := configsWith(t)
	if err := second.Delete(istio.ServiceEntry, "a", "ns", nil); err != nil {
		t.Error(err)
	}
	if _, err := second.Create(stored.Clone()); err != nil {
		t.Error(err)
	}
	merged := aggregate.MakeCache(configs, other)
	if list := merged.List(istio.ServiceEntry, ""); len(list) != 1 || list[0].Labels["team"] != "shop" {
		t.Errorf("the merged list is %v", list)
	}
}

// TestPortedPushes shows the differences of pushes in docs/porting.md.
func TestPortedPushes(t *testing.T) {
	for handlers, want := range []int{1, 2} { // handlers ported from a program of Istio's packages
		t.Run(fmt.Sprintf("%d handlers", handlers), func(t *testing.T) {
			var own xdstest.Recorder
			registries := aggregate.NewController(aggregate.Options{Updater: &own})
			var filled *services.Registry
			registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
				filled = services.New(services.Options{Updater: updater})
				return filled
			})
			for range handlers {
				registries.AppendServiceHandler(xdsupdate.ServiceHandler(&own))
			}
			if err := filled.SetService(api("a.example.com")); err != nil {
				t.Fatal(err)
			}
			if got := pushes(&own); got != want {
				t.Errorf("%d pushes are requested, want %d", got, want)
			}
		})
	}
	t.Run("traffic", func(t *testing.T) {
		requested := 0
		pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) { requested++ })
		store, configs := configsWith(t)
		traffic.New(configs).Attach(pusher)
		flush := func() {
			configs.Drain()
			if err := pusher.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		flush()
		before := requested
		rule := configstore.NewConfig("a", "ns", &networking.DestinationRule{Host: "a.example.com"})
		if _, err := store.Create(rule.Config()); err != nil {
			t.Fatal(err)
		}
		if flush(); requested != before+1 {
			t.Errorf("%d pushes, want 1", requested-before)
		}
	})
}

func pushes(r *xdstest.Recorder) (n int) {
	for _, c := range r.Take() {
		if c.Kind == "ConfigUpdate" {
			n++
		}
	}
	return n
}

// TestPortedRegistries shows the differences of registries in docs/porting.md.
func TestPortedRegistries(t *testing.T) {
	var own xdstest.Recorder
	registries := aggregate.NewController(aggregate.Options{Updater: &own})
	add := func(provider registry.ProviderID, cluster registry.ClusterID) (r *services.Registry) {
		registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
			r = services.New(services.Options{Provider: provider, Cluster: cluster, Updater: updater})
			return r
		})
		return r
	}
	first, kube := add("Consul", "east"), add(registry.Kubernetes, "west")
	endpoint := &registry.Endpoint{Addresses: []string{"10.0.0.1"}, ServicePort: 80, ServicePortName: "http", EndpointPort: 80}
	for _, r := range []*services.Registry{first, kube} {
		if err := r.Set(api("a.example.com"), []*registry.Endpoint{endpoint}); err != nil {
			t.Fatal(err)
		}
	}
	service := registries.GetService("a.example.com")
	if service.Attributes.Provider != registry.Kubernetes {
		t.Errorf("GetService returns the service of %s", service.Attributes.Provider)
	}
	for _, i := range first.InstancesByPort(first.GetService("a.example.com"), 80) {
		if cluster := i.Endpoint.Attributes().ClusterID; cluster != "" {
			t.Errorf("the endpoint is in the cluster %q", cluster)
		}
	}
	registries.DeleteRegistry("east", "Consul")
	own.Take()
	if err := first.SetService(api("late.example.com")); err != nil {
		t.Error(err)
	}
	own.Expect(t)
}
