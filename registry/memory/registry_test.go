// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func TestDefaults(t *testing.T) {
	r := memory.New(memory.Options{})
	given := service("a.example.com", "ns", registry.ClientSideLB)
	must(t, r.SetService(given))
	got := r.GetService("a.example.com")
	if got.Attributes.Provider != registry.Memory || got.Attributes.Name != "a.example.com" || got.DefaultAddress != registry.UnspecifiedAddress {
		t.Errorf("kept %+v", got)
	}
	if given.Attributes.Provider != "" || given.Attributes.Name != "" || given.DefaultAddress != "" {
		t.Errorf("SetService changed its argument to %+v", given)
	}
	complete := *given
	complete.Attributes.Provider, complete.Attributes.Name, complete.DefaultAddress = "Consul", "a", "10.0.0.1"
	must(t, r.SetService(&complete))
	if got := r.GetService("a.example.com"); got != &complete {
		t.Errorf("a complete service was replaced by %+v", got)
	}
	equal := complete
	must(t, r.SetService(&equal))
	if got := r.GetService("a.example.com"); got != &complete {
		t.Errorf("an equal service took the place of the one that is there: %p", got)
	}
	named := memory.New(memory.Options{Provider: "Consul", Cluster: "east"})
	if named.Provider() != "Consul" || named.Cluster() != "east" {
		t.Errorf("%s/%s", named.Provider(), named.Cluster())
	}
}

func TestErrors(t *testing.T) {
	port := func(name string, number uint32) *registry.Port { return &registry.Port{Name: name, Number: number} }
	with := func(ports ...*registry.Port) *registry.Service {
		return &registry.Service{Hostname: "a.example.com", Ports: ports, Attributes: registry.ServiceAttributes{Namespace: "ns"}}
	}
	r := memory.New(memory.Options{})
	must(t, r.SetService(with(port("", 80))))
	one := endpoint("1.1.1.1")
	tests := []struct {
		name string
		err  error
		want error
		text string
	}{
		{"nil service", r.SetService(nil), memory.ErrInvalid, "set service: invalid"},
		{"no host name", r.SetService(&registry.Service{}), memory.ErrInvalid, "invalid: hostname: is empty"},
		{"nil port", r.SetService(with(nil)), memory.ErrInvalid, "ports[0]: is nil"},
		{"port 0", r.SetService(with(port("", 0))), memory.ErrInvalid, "set service ns/a.example.com: invalid: ports[0].number: 0"},
		{"port 65536", r.SetService(with(port("", 65536))), memory.ErrInvalid, "65536"},
		{"unnamed port", r.SetService(with(port("a", 1), port("", 2))), memory.ErrInvalid, "ports[1].name: is empty"},
		{"equal names", r.SetService(with(port("a", 1), port("a", 2))), memory.ErrInvalid, `ports[1].name: "a"`},
		{"equal numbers", r.SetService(with(port("a", 1), port("b", 1))), memory.ErrInvalid, "ports[1].number: 1"},
		{"endpoints of nobody", r.SetEndpoints("b.example.com", "ns", nil), memory.ErrUnknownService, "set endpoints of service ns/b.example.com: unknown service"},
		{"no namespace", r.SetEndpoints("b.example.com", "", nil), memory.ErrUnknownService, "set endpoints of service b.example.com: unknown service"},
		{"endpoint of nobody", r.AddEndpoint("a.example.com", "other", one), memory.ErrUnknownService, "other/a.example.com"},
		{"nil endpoint", r.SetEndpoints("a.example.com", "ns", []*registry.Endpoint{nil}), memory.ErrInvalid, "nil"},
		{"no endpoint", r.AddEndpoint("a.example.com", "ns", nil), memory.ErrInvalid, "without endpoint"},
		{"unknown endpoint", r.RemoveEndpoint("a.example.com", "ns", one), memory.ErrUnknownEndpoint, "1.1.1.1 port 8080"},
		{"removal of nobody", r.RemoveService("b.example.com", "ns"), memory.ErrUnknownService, "remove service ns/b.example.com"},
		{"nil workload", r.SetWorkload(nil), memory.ErrInvalid, "nil"},
		{"workload without name", r.SetWorkload(vm("", "1.1.1.1", "a")), memory.ErrInvalid, "no name"},
		{"workload without endpoint", r.SetWorkload(&registry.WorkloadInstance{Name: "w", Namespace: "ns"}), memory.ErrInvalid, "set Pod ns/w: invalid"},
		{
			"workload of another cluster", r.RemoveWorkload(registry.WorkloadKey{Cluster: "east", Namespace: "ns", Name: "w"}),
			memory.ErrUnknownWorkload, "remove Pod ns/w of cluster east: unknown workload",
		},
	}
	for _, tt := range tests {
		if !errors.Is(tt.err, tt.want) || !strings.Contains(fmt.Sprint(tt.err), tt.text) {
			t.Errorf("%s: error %v, want %v with %q", tt.name, tt.err, tt.want, tt.text)
		}
	}
}

// TestFailedChangeChangesNothing: the changes of one call are made all or not at
// all.
func TestFailedChangeChangesNothing(t *testing.T) {
	r := memory.New(memory.Options{})
	must(t, r.SetService(service("a.example.com", "ns", registry.ClientSideLB)))
	must(t, r.AddEndpoint("a.example.com", "ns", endpoint("1.1.1.1")))
	err := r.ChangeEndpoints("a.example.com", "ns", []xdsupdate.EndpointChange{
		{Old: endpoint("1.1.1.1")}, {New: endpoint("2.2.2.2")}, {Old: endpoint("9.9.9.9")},
	})
	if !errors.Is(err, memory.ErrUnknownEndpoint) {
		t.Errorf("error %v", err)
	}
	if got := addresses(r, "a.example.com"); !slices.Equal(got, []string{"1.1.1.1"}) {
		t.Errorf("endpoints are %v", got)
	}
}

func addresses(r *memory.Registry, hostname registry.Hostname) []string {
	var out []string
	for _, i := range r.InstancesByPort(r.GetService(hostname), 0) {
		out = append(out, i.Endpoint.Address())
	}
	return out
}

// TestEqualEndpointStays: unchanged endpoints keep their identity, independent of the order of
// their addresses.
func TestEqualEndpointStays(t *testing.T) {
	r := memory.New(memory.Options{})
	must(t, r.SetService(service("a.example.com", "ns", registry.ClientSideLB)))
	first := endpoint("1.1.1.1")
	first.Addresses = []string{"1.1.1.1", "2001:db8::1"}
	swapped := endpoint("2001:db8::1")
	swapped.Addresses = []string{"2001:db8::1", "1.1.1.1"}
	must(t, r.SetEndpoints("a.example.com", "ns", []*registry.Endpoint{first}))
	must(t, r.AddEndpoint("a.example.com", "ns", swapped))
	must(t, r.SetEndpoints("a.example.com", "ns", []*registry.Endpoint{endpoint("1.1.1.1"), first}))
	must(t, r.RemoveEndpoint("a.example.com", "ns", endpoint("1.1.1.1")))
	must(t, r.SetEndpoints("a.example.com", "ns", []*registry.Endpoint{swapped, swapped}))
	got := r.InstancesByPort(r.GetService("a.example.com"), 80)
	if len(got) != 1 || got[0].Endpoint != first {
		t.Errorf("the endpoint became %v", got)
	}
	for _, ip := range first.Addresses {
		if n := len(r.GetProxyServiceInstances(&registry.Proxy{IPAddresses: []string{ip}})); n != 1 {
			t.Errorf("a proxy at %s is %d instances, want 1", ip, n)
		}
	}
}

func TestWorkloadLabels(t *testing.T) {
	r := memory.New(memory.Options{})
	labels := func(namespace string, ips ...string) registry.Labels {
		return r.GetProxyWorkloadLabels(&registry.Proxy{Namespace: namespace, IPAddresses: ips})
	}
	if got := labels("ns", "5.5.5.5"); got != nil {
		t.Errorf("an unknown proxy has labels %v", got)
	}
	bare := vm("bare", "6.6.6.6", "")
	bare.Endpoint = &registry.Endpoint{Addresses: []string{"6.6.6.6"}}
	must(t, r.SetWorkload(bare))
	if got := labels("ns", "6.6.6.6"); got == nil || len(got) != 0 {
		t.Errorf("a workload without labels gives %v, want empty labels", got)
	}
	far, near, pod := vm("a", "5.5.5.5", "far"), vm("z", "5.5.5.5", "near"), vm("m", "5.5.5.5", "pod")
	far.Namespace, far.Kind = "aa", registry.WorkloadEntry
	near.Kind = registry.WorkloadEntry
	pod.Namespace = "zz"
	for _, w := range []*registry.WorkloadInstance{far, near, pod} {
		must(t, r.SetWorkload(w))
	}
	for namespace, want := range map[string]string{"ns": "near", "": "pod", "elsewhere": "pod"} {
		if got := labels(namespace, "7.7.7.7", "5.5.5.5")["app"]; got != want {
			t.Errorf("in namespace %q the labels are those of %q, want %q", namespace, got, want)
		}
	}
	moved := *near
	moved.Endpoint = &registry.Endpoint{Addresses: []string{"8.8.8.8"}, Shared: near.Endpoint.Shared}
	must(t, r.SetWorkload(&moved))
	if got := labels("ns", "5.5.5.5")["app"]; got != "pod" {
		t.Errorf("after the workload of the namespace moved, the labels are those of %q, want %q", got, "pod")
	}
	if r.RemoveWorkload(pod.Key()) != nil || labels("", "5.5.5.5")["app"] != "far" {
		t.Errorf("after the pod went: %v", labels("", "5.5.5.5"))
	}
}

func TestGatewaysOnce(t *testing.T) {
	r := memory.New(memory.Options{})
	one, two := registry.NetworkGateway{Network: "a", Addr: "1.1.1.1"}, registry.NetworkGateway{Network: "b"}
	r.SetNetworkGateways([]registry.NetworkGateway{two, one, two, one})
	if got := r.NetworkGateways(); !slices.Equal(got, []registry.NetworkGateway{one, two}) {
		t.Errorf("NetworkGateways() = %v", got)
	}
}

func TestHasSynced(t *testing.T) {
	filled := false
	r := memory.New(memory.Options{HasSynced: func() bool { return filled }})
	if r.HasSynced() {
		t.Error("synced before the host says so")
	}
	filled = true
	if !r.HasSynced() {
		t.Error("not synced although the host says so")
	}
	if !memory.New(memory.Options{}).HasSynced() {
		t.Error("a registry without Options.HasSynced has not synced")
	}
}

// TestAfterRun: after Run has ended no handler is notified, and reads still work.
func TestAfterRun(t *testing.T) {
	r := memory.New(memory.Options{Cluster: "east"})
	notified := 0
	r.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { notified++ })
	stop := make(chan struct{})
	close(stop)
	r.Run(stop)
	must(t, r.SetService(service("a.example.com", "ns", registry.ClientSideLB)))
	if notified != 0 || r.GetService("a.example.com") == nil {
		t.Errorf("notified %d times, the service is %v", notified, r.GetService("a.example.com"))
	}
	if got, want := fmt.Sprint(r.Flush(t.Context())), "flush registry Memory/east: event delivery has stopped"; got != want {
		t.Errorf("Flush = %q, want %q", got, want)
	}
}

// TestIndexFollows: after random changes by several goroutines, with concurrent readers, an index
// fed by the updater's calls equals the registry.
func TestIndexFollows(t *testing.T) {
	for _, kind := range []string{"lists", "deltas"} {
		t.Run(kind, func(t *testing.T) {
			u := &updater{index: xdsupdate.NewEndpointIndex()}
			opts := memory.Options{Cluster: "east", Updater: u}
			if kind == "deltas" {
				opts.Updater = deltaUpdater{u}
			}
			r := memory.New(opts)
			var writers, readers sync.WaitGroup
			done := make(chan struct{})
			for range 2 {
				readers.Go(func() { read(t, r, done) })
			}
			for i := range 4 {
				writers.Go(func() { write(r, rand.New(rand.NewPCG(uint64(i), 7))) })
			}
			writers.Wait()
			close(done)
			readers.Wait()
			expectIndex(t, r, u.index)
		})
	}
}

func hostname(i int) registry.Hostname { return registry.Hostname(fmt.Sprintf("s%d.example.com", i)) }

// write makes random changes; that a service or an endpoint is not there is no
// error here.
func write(r *memory.Registry, random *rand.Rand) {
	for range 300 {
		h, e := hostname(random.IntN(3)), endpoint(fmt.Sprintf("10.0.0.%d", random.IntN(6)))
		switch random.IntN(6) {
		case 0:
			_ = r.SetService(service(h, "ns", registry.Resolution(random.IntN(2))))
		case 1:
			_ = r.RemoveEndpoint(h, "ns", e)
		case 2:
			_ = r.SetEndpoints(h, "ns", []*registry.Endpoint{e, endpoint("10.0.0.9")})
		case 3:
			if random.IntN(4) == 0 {
				_ = r.RemoveService(h, "ns")
			}
		default:
			_ = r.AddEndpoint(h, "ns", e)
		}
	}
}

// read looks for halves of a change: the instances of a service that is not
// listed, or a list out of order.
func read(t *testing.T, r *memory.Registry, done <-chan struct{}) {
	t.Helper()
	for {
		select {
		case <-done:
			return
		default:
		}
		if !slices.IsSortedFunc(r.Services(), registry.CompareServices) {
			t.Error("Services is not sorted")
			return
		}
		for _, i := range r.GetProxyServiceInstances(&registry.Proxy{IPAddresses: []string{"10.0.0.1", "10.0.0.9"}}) {
			if i.Service == nil || i.ServicePort == nil {
				t.Errorf("half an instance: %+v", i)
				return
			}
		}
	}
}

func expectIndex(t *testing.T, r *memory.Registry, index *xdsupdate.EndpointIndex) {
	t.Helper()
	for i := range 3 {
		h := hostname(i)
		want := addresses(r, h)
		got := show(index.Service(h, "ns").Shard(xdsupdate.ShardKeyOf(r)))
		if !slices.Equal(got, want) {
			t.Errorf("%s: the index has %v, the registry %v", h, got, want)
		}
	}
}

func TestGetServiceIsTheOldest(t *testing.T) {
	r := memory.New(memory.Options{})
	now := time.Now()
	for i, namespace := range []string{"c", "b", "a"} {
		s := service("a.example.com", namespace, registry.ClientSideLB)
		s.CreationTime = now
		if i == 0 {
			s.CreationTime = now.Add(-time.Hour)
		}
		must(t, r.SetService(s))
	}
	for _, want := range []string{"c", "a", "b"} {
		got := r.GetService("a.example.com")
		if got.Attributes.Namespace != want {
			t.Errorf("GetService is in namespace %s, want %s", got.Attributes.Namespace, want)
		}
		must(t, r.RemoveService("a.example.com", want))
	}
}
