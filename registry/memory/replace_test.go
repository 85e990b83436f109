// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// definition is a service of namespace ns with endpoints at some addresses.
func definition(hostname registry.Hostname, resolution registry.Resolution, addresses ...string) memory.Definition {
	d := memory.Definition{Service: service(hostname, "ns", resolution)}
	for _, a := range addresses {
		d.Endpoints = append(d.Endpoints, endpoint(a))
	}
	return d
}

// TestReplace covers all changes of a list. Each step is one batch, with calls only for the
// differences.
func TestReplace(t *testing.T) {
	u := &updater{index: xdsupdate.NewEndpointIndex()}
	r := memory.New(memory.Options{Cluster: "east", Updater: u})
	renewed := definition("a.example.com", registry.DNSLB, "3.3.3.3")
	renewed.Service.ResourceVersion = "2"
	for _, step := range []struct {
		name string
		all  []memory.Definition
		want []string
	}{
		{"nothing", nil, nil},
		{
			"two services",
			[]memory.Definition{definition("b.example.com", 0, "2.2.2.2", "1.1.1.1"), definition("a.example.com", 0)},
			[]string{
				"svc Memory/east ns/b.example.com add", "svc Memory/east ns/a.example.com add",
				"eds Memory/east ns/b.example.com [1.1.1.1 2.2.2.2] FullPush",
				"config full=true ServiceEntry/ns/a.example.com ServiceEntry/ns/b.example.com service×1",
			},
		},
		{
			"the same",
			[]memory.Definition{definition("a.example.com", 0), definition("b.example.com", 0, "1.1.1.1", "2.2.2.2")},
			nil,
		},
		{
			"an endpoint",
			[]memory.Definition{definition("a.example.com", 0), definition("b.example.com", 0, "1.1.1.1")},
			[]string{"eds Memory/east ns/b.example.com [1.1.1.1] IncrementalPush"},
		},
		{
			"one service goes, another one changes with its endpoints",
			[]memory.Definition{definition("a.example.com", registry.DNSLB, "2.2.2.2")},
			[]string{
				"svc Memory/east ns/b.example.com delete", "svc Memory/east ns/a.example.com update",
				"eds Memory/east ns/a.example.com [2.2.2.2] FullPush",
				"config full=true ServiceEntry/ns/a.example.com ServiceEntry/ns/b.example.com service×1",
			},
		},
		{
			"an endpoint of a DNS service",
			[]memory.Definition{definition("a.example.com", registry.DNSLB, "3.3.3.3")},
			[]string{
				"eds Memory/east ns/a.example.com [3.3.3.3] IncrementalPush", "config full=true ServiceEntry/ns/a.example.com endpoint×1",
			},
		},
		{"what proxies do not see", []memory.Definition{renewed}, nil},
		{
			"nothing again", nil,
			[]string{"svc Memory/east ns/a.example.com delete", "config full=true ServiceEntry/ns/a.example.com service×1"},
		},
	} {
		must(t, r.Replace(step.all))
		calls := u.take()
		for i, c := range calls {
			calls[i] = sortedKeys(c)
		}
		if diff := cmp.Diff(step.want, calls); diff != "" {
			t.Errorf("%s: calls of the updater (-want +got):\n%s", step.name, diff)
		}
		if got := len(r.Services()); got != len(step.all) {
			t.Errorf("%s: %d services, want %d", step.name, got, len(step.all))
		}
	}
	must(t, r.Replace([]memory.Definition{renewed}))
	if got := r.GetService("a.example.com").ResourceVersion; got != "2" {
		t.Errorf("resource version %q, want 2", got)
	}
}

// sortedKeys orders the two keys of a request, which come from a map.
func sortedKeys(call string) string {
	var a, b, rest string
	if n, _ := fmt.Sscanf(call, "config full=true %s %s %s", &a, &b, &rest); n == 3 && a > b {
		return fmt.Sprintf("config full=true %s %s %s", b, a, rest)
	}
	return call
}

// TestSetIsOneStep: handlers, and reads within the updater, see the service with its endpoints.
func TestSetIsOneStep(t *testing.T) {
	u := &updater{index: xdsupdate.NewEndpointIndex()}
	r := memory.New(memory.Options{Updater: u})
	var seen []string
	look := func(where string) {
		seen = append(seen, fmt.Sprint(where, addresses(r, "a.example.com")))
	}
	u.look = func() { look("updater ") }
	r.AppendServiceHandler(func(_, _ *registry.Service, event registry.Event) { look("handler " + event.String() + " ") })
	must(t, r.Set(service("a.example.com", "ns", 0), []*registry.Endpoint{endpoint("1.1.1.1")}))
	must(t, r.Set(service("a.example.com", "ns", registry.Passthrough), []*registry.Endpoint{endpoint("2.2.2.2")}))
	want := []string{
		"updater [1.1.1.1]", "updater [1.1.1.1]", "updater [1.1.1.1]", "handler add [1.1.1.1]",
		"updater [2.2.2.2]", "updater [2.2.2.2]", "updater [2.2.2.2]", "handler update [2.2.2.2]",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
}

// TestNoPushInBetween: no push sees a service without its endpoints, or endpoints of two states of
// the list.
func TestNoPushInBetween(t *testing.T) {
	var r *memory.Registry
	var pushes atomic.Int64
	var root *xdsupdate.Root
	hosts := []registry.Hostname{"a.example.com", "b.example.com"}
	p := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {
		services, _ := r.ServicesAt(r, root)
		var seen []string
		for _, h := range hosts {
			text := ""
			for e := range root.Endpoints().Service(h, "ns").All() {
				text += e.Address()
			}
			seen = append(seen, fmt.Sprint(services.Get(h).Resolution, " ", text))
		}
		if seen[0] != seen[1] || seen[0] == "" {
			t.Errorf("a push has %q of the two services", seen)
		}
		pushes.Inc()
	}, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}, Capture: func(_ *xdsupdate.PushRequest, now *xdsupdate.Root) bool {
		root = now
		return true
	}})
	r = memory.New(memory.Options{Updater: p})
	state := func(resolution registry.Resolution, address string) []memory.Definition {
		return []memory.Definition{definition(hosts[0], resolution, address), definition(hosts[1], resolution, address)}
	}
	must(t, r.Replace(state(0, "1.1.1.1")))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		p.Run(stop)
	}()
	for i := 0; pushes.Load() < 30 && i < 100_000; i++ {
		must(t, r.Replace(state(registry.Resolution(i%2), fmt.Sprintf("1.1.1.%d", i%200))))
	}
	close(stop)
	<-done
	if pushes.Load() == 0 {
		t.Error("nothing was pushed")
	}
}

// TestReplaceIsRecomputation: after any history of lists the registry, the updater and the handlers
// have the same state as after the last list alone.
func TestReplaceIsRecomputation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	u := &updater{index: xdsupdate.NewEndpointIndex()}
	r := memory.New(memory.Options{Updater: deltaUpdater{u}})
	shard := xdsupdate.ShardKeyOf(r)
	heard := map[string]*registry.Service{}
	r.AppendServiceHandler(func(_, curr *registry.Service, event registry.Event) {
		if event == registry.EventDelete {
			delete(heard, curr.Key())
		} else {
			heard[curr.Key()] = curr
		}
	})
	for range 300 {
		all := randomDefinitions(random)
		must(t, r.Replace(all))
		fresh := memory.New(memory.Options{})
		for _, d := range all {
			must(t, fresh.SetService(d.Service))
			must(t, fresh.SetEndpoints(d.Service.Hostname, d.Service.Attributes.Namespace, d.Endpoints))
		}
		want := fresh.Services()
		if !slices.EqualFunc(r.Services(), want, (*registry.Service).Equal) || len(heard) != len(want) {
			t.Fatalf("services %v, handlers have %d, want %v", r.Services(), len(heard), want)
		}
		for _, s := range want {
			h, ns := s.Hostname, s.Attributes.Namespace
			list := show(u.index.Service(h, ns).Shard(shard))
			var got []string
			for _, i := range r.InstancesByPort(s, 0) {
				got = append(got, i.Endpoint.Address())
			}
			var expected []string
			for _, i := range fresh.InstancesByPort(s, 0) {
				expected = append(expected, i.Endpoint.Address())
			}
			if !slices.Equal(got, expected) || !slices.Equal(list, expected) || !heard[s.Key()].Equal(s) {
				t.Fatalf("%s has %v, in the index %v, want %v", s.Key(), got, list, expected)
			}
		}
		for _, a := range []string{"1.1.1.1", "1.1.1.2"} {
			p := &registry.Proxy{IPAddresses: []string{a}}
			if got, want := len(r.GetProxyServiceInstances(p)), len(fresh.GetProxyServiceInstances(p)); got != want {
				t.Fatalf("a proxy at %s is %d instances, want %d", a, got, want)
			}
		}
	}
}

func randomDefinitions(random *rand.Rand) []memory.Definition {
	var out []memory.Definition
	for _, h := range []registry.Hostname{"a.example.com", "b.example.com", "c.example.com"} {
		for _, ns := range []string{"one", "two"} {
			if random.IntN(2) == 0 {
				continue
			}
			d := memory.Definition{Service: service(h, ns, registry.Resolution(random.IntN(2)))}
			for i := range 4 {
				if random.IntN(2) == 0 {
					d.Endpoints = append(d.Endpoints, endpoint(fmt.Sprintf("1.1.1.%d", i)))
				}
			}
			random.Shuffle(len(d.Endpoints), func(i, j int) {
				d.Endpoints[i], d.Endpoints[j] = d.Endpoints[j], d.Endpoints[i]
			})
			out = append(out, d)
		}
	}
	return out
}

// TestInvalidDefinitions: each defect is an error that names the service and the field,
// and leaves everything as it was.
func TestInvalidDefinitions(t *testing.T) {
	r := memory.New(memory.Options{})
	must(t, r.Set(service("a.example.com", "ns", 0), []*registry.Endpoint{endpoint("1.1.1.1")}))
	with := func(change func(*registry.Endpoint)) memory.Definition {
		d := definition("a.example.com", 0, "2.2.2.2", "3.3.3.3")
		change(d.Endpoints[1])
		return d
	}
	portless := definition("a.example.com", 0)
	portless.Service.Ports[0].Number = 70000
	for _, tt := range []struct {
		d     memory.Definition
		field string
	}{
		{memory.Definition{}, ""},
		{memory.Definition{Service: &registry.Service{}}, "hostname"},
		{portless, "ports[0].number"},
		{memory.Definition{Service: service("a.example.com", "ns", 0), Endpoints: []*registry.Endpoint{nil}}, "endpoints[0]"},
		{with(func(e *registry.Endpoint) { e.Addresses = nil }), "endpoints[1].addresses"},
		{with(func(e *registry.Endpoint) { e.Addresses = []string{"::1", ""} }), "endpoints[1].addresses[1]"},
		{with(func(e *registry.Endpoint) { e.Addresses = []string{"db.example.com"} }), "endpoints[1].addresses[0]"},
		{with(func(e *registry.Endpoint) { e.EndpointPort = 0 }), "endpoints[1].endpointPort"},
		{with(func(e *registry.Endpoint) { e.EndpointPort = 65536 }), "endpoints[1].endpointPort"},
		{with(func(e *registry.Endpoint) { e.ServicePort = 81 }), "endpoints[1].servicePort"},
		{with(func(e *registry.Endpoint) { e.ServicePort, e.ServicePortName = 0, "tcp" }), "endpoints[1].servicePortName"},
	} {
		for verb, err := range map[string]error{
			"set": r.Set(tt.d.Service, tt.d.Endpoints), "replace": r.Replace([]memory.Definition{definition("b.example.com", 0), tt.d}),
		} {
			var invalid *memory.InvalidError
			if !errors.As(err, &invalid) || !errors.Is(err, memory.ErrInvalid) || invalid.Field != tt.field {
				t.Errorf("%s: error %v, want one of field %q", verb, err, tt.field)
			}
		}
		if got := addresses(r, "a.example.com"); len(r.Services()) != 1 || !slices.Equal(got, []string{"1.1.1.1"}) {
			t.Fatalf("%s: the registry became %v with %v", tt.field, r.Services(), got)
		}
	}
	twice := []memory.Definition{definition("b.example.com", 0), definition("b.example.com", registry.DNSLB)}
	if err := r.Replace(twice); !errors.Is(err, memory.ErrInvalid) || len(r.Services()) != 1 {
		t.Errorf("a service that is there twice: %v, and the registry has %d services", err, len(r.Services()))
	}
	const want = "set service ns/a.example.com: invalid: endpoints[0].addresses: none"
	if err := r.Set(service("a.example.com", "ns", 0), []*registry.Endpoint{{}}); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestUnusualEndpoints: sockets have no port, and names are for proxies that resolve
// them.
func TestUnusualEndpoints(t *testing.T) {
	r := memory.New(memory.Options{})
	socket := endpoint("/run/a.sock")
	socket.EndpointPort = 0
	must(t, r.Set(service("a.example.com", "ns", 0), []*registry.Endpoint{socket}))
	must(t, r.Set(service("b.example.com", "ns", registry.DNSLB), []*registry.Endpoint{endpoint("db.example.com")}))
}
