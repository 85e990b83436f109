// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// updater feeds an endpoint index and records its calls. look, if set, is called during each call.
type updater struct {
	index *xdsupdate.EndpointIndex
	calls []string
	look  func()
}

func (u *updater) note(format string, args ...any) {
	u.calls = append(u.calls, fmt.Sprintf(format, args...))
	if u.look != nil {
		u.look()
	}
}

func (u *updater) take() []string {
	calls := u.calls
	u.calls = nil
	return calls
}

func (u *updater) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	push := u.index.UpdateServiceEndpoints(shard, hostname, namespace, endpoints)
	u.note("eds %s %s/%s %s %s", shard, namespace, hostname, show(endpoints), push)
}

func (u *updater) EDSCacheUpdate(xdsupdate.ShardKey, registry.Hostname, string, []*registry.Endpoint) {
	u.note("eds cache")
}

func (u *updater) SvcUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	if event == registry.EventDelete {
		u.index.DeleteServiceShard(shard, hostname, namespace)
	}
	u.note("svc %s %s/%s %s", shard, namespace, hostname, event)
}

func (u *updater) ConfigUpdate(req *xdsupdate.PushRequest) {
	var keys []string
	for k := range req.ConfigsUpdated {
		keys = append(keys, k.String())
	}
	for reason, n := range req.Reason {
		keys = append(keys, fmt.Sprintf("%s×%d", reason, n))
	}
	u.note("config full=%t %s", req.Full, strings.Join(keys, " "))
}

func (u *updater) ProxyUpdate(cluster registry.ClusterID, ip string) {
	u.note("proxy %s %s", cluster, ip)
}
func (u *updater) RemoveShard(shard xdsupdate.ShardKey) { u.note("remove %s", shard) }

// deltaUpdater takes changes of endpoints, too.
type deltaUpdater struct{ *updater }

func (u deltaUpdater) EDSDeltaUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange) {
	var parts []string
	for _, c := range changes {
		switch {
		case c.Old == nil:
			parts = append(parts, "+"+c.New.Address())
		case c.New == nil:
			parts = append(parts, "-"+c.Old.Address())
		default:
			parts = append(parts, c.Old.Address()+">"+c.New.Address())
		}
	}
	push := u.index.UpdateEndpoints(shard, hostname, namespace, changes)
	u.note("delta %s/%s %v %s", namespace, hostname, parts, push)
}

func show(endpoints []*registry.Endpoint) []string {
	var out []string
	for _, e := range endpoints {
		out = append(out, e.Address())
	}
	return out
}

func service(hostname registry.Hostname, namespace string, resolution registry.Resolution) *registry.Service {
	return &registry.Service{
		Hostname: hostname, Resolution: resolution,
		Ports:      []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		Attributes: registry.ServiceAttributes{Namespace: namespace},
	}
}

func endpoint(address string) *registry.Endpoint {
	return &registry.Endpoint{Addresses: []string{address}, EndpointPort: 8080, ServicePort: 80, ServicePortName: "http"}
}

func vm(name, address, app string) *registry.WorkloadInstance {
	return &registry.WorkloadInstance{Namespace: "ns", Name: name, Endpoint: &registry.Endpoint{
		Addresses: []string{address}, Shared: &registry.EndpointAttributes{Labels: registry.Labels{"app": app}},
	}}
}

// action is a change of a registry and the calls that it makes.
type action struct {
	name string
	do   func(r *memory.Registry) error
	want []string
}

func ok(f func(r *memory.Registry)) func(r *memory.Registry) error {
	return func(r *memory.Registry) error { f(r); return nil }
}

// actions is one history that goes through all calls.
func actions() []action {
	set := func(addresses ...string) func(r *memory.Registry) error {
		return func(r *memory.Registry) error {
			var list []*registry.Endpoint
			for _, a := range addresses {
				list = append(list, endpoint(a))
			}
			return r.SetEndpoints("a.example.com", "ns", list)
		}
	}
	return []action{
		{
			"a new service", func(r *memory.Registry) error {
				return r.SetService(service("a.example.com", "ns", registry.ClientSideLB))
			},
			[]string{"svc Memory/east ns/a.example.com add", "config full=true ServiceEntry/ns/a.example.com service×1"},
		},
		{"the same service", func(r *memory.Registry) error {
			return r.SetService(service("a.example.com", "ns", registry.ClientSideLB))
		}, nil},
		{"no endpoints", set(), nil},
		{"endpoints", set("2.2.2.2", "1.1.1.1", "1.1.1.1"), []string{"eds Memory/east ns/a.example.com [1.1.1.1 2.2.2.2] FullPush"}},
		{"the same endpoints in another order", set("1.1.1.1", "2.2.2.2"), nil},
		{"another endpoint", set("1.1.1.1", "3.3.3.3"), []string{"eds Memory/east ns/a.example.com [1.1.1.1 3.3.3.3] IncrementalPush"}},
		{
			"one more", func(r *memory.Registry) error { return r.AddEndpoint("a.example.com", "ns", endpoint("0.0.0.1")) },
			[]string{"eds Memory/east ns/a.example.com [0.0.0.1 1.1.1.1 3.3.3.3] IncrementalPush"},
		},
		{"one that is there", func(r *memory.Registry) error { return r.AddEndpoint("a.example.com", "ns", endpoint("0.0.0.1")) }, nil},
		{
			"one less", func(r *memory.Registry) error { return r.RemoveEndpoint("a.example.com", "ns", endpoint("1.1.1.1")) },
			[]string{"eds Memory/east ns/a.example.com [0.0.0.1 3.3.3.3] IncrementalPush"},
		},
		{
			"a DNS service instead", func(r *memory.Registry) error { return r.SetService(service("a.example.com", "ns", registry.DNSLB)) },
			[]string{"svc Memory/east ns/a.example.com update", "config full=true ServiceEntry/ns/a.example.com service×1"},
		},
		{"its last endpoints", set(), []string{
			"eds Memory/east ns/a.example.com [] IncrementalPush",
			"config full=true ServiceEntry/ns/a.example.com endpoint×1",
		}},
		{"its first endpoint", set("1.1.1.1"), []string{
			"eds Memory/east ns/a.example.com [1.1.1.1] IncrementalPush",
			"config full=true ServiceEntry/ns/a.example.com endpoint×1",
		}},
		{
			"its removal", func(r *memory.Registry) error { return r.RemoveService("a.example.com", "ns") },
			[]string{"svc Memory/east ns/a.example.com delete", "config full=true ServiceEntry/ns/a.example.com service×1"},
		},
		{"a workload", func(r *memory.Registry) error { return r.SetWorkload(vm("vm", "5.5.5.5", "a")) }, []string{"proxy east 5.5.5.5"}},
		{"the same workload", func(r *memory.Registry) error { return r.SetWorkload(vm("vm", "5.5.5.5", "a")) }, nil},
		{"its labels", func(r *memory.Registry) error { return r.SetWorkload(vm("vm", "5.5.5.5", "b")) }, []string{"proxy east 5.5.5.5"}},
		{"its address", func(r *memory.Registry) error { return r.SetWorkload(vm("vm", "5.5.5.6", "b")) }, []string{"proxy east 5.5.5.6"}},
		{"a host name as its address", func(r *memory.Registry) error { return r.SetWorkload(vm("vm", "vm.example.org", "c")) }, nil},
		{"its end", func(r *memory.Registry) error { return r.RemoveWorkload(vm("vm", "", "").Key()) }, nil},
		{"gateways", ok(func(r *memory.Registry) { r.SetNetworkGateways([]registry.NetworkGateway{{Network: "n"}}) }), nil},
	}
}

func TestUpdaterCalls(t *testing.T) {
	u := &updater{index: xdsupdate.NewEndpointIndex()}
	r := memory.New(memory.Options{Cluster: "east", Updater: u})
	for _, a := range actions() {
		if err := a.do(r); err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
		if got := u.take(); !slices.Equal(got, a.want) {
			t.Errorf("%s: the updater was called with\n\t%q\nwant\n\t%q", a.name, got, a.want)
		}
	}
}

// TestDeltas: deltas lead to the same index and the same pushes as lists.
func TestDeltas(t *testing.T) {
	lists := &updater{index: xdsupdate.NewEndpointIndex()}
	deltas := &updater{index: xdsupdate.NewEndpointIndex()}
	a := memory.New(memory.Options{Cluster: "east", Updater: lists})
	b := memory.New(memory.Options{Cluster: "east", Updater: deltaUpdater{deltas}})
	shard := xdsupdate.ShardKeyOf(a)
	for _, step := range actions() {
		if err := step.do(a); err != nil {
			t.Fatal(err)
		}
		if err := step.do(b); err != nil {
			t.Fatal(err)
		}
		pushes := func(calls []string) (out []string) {
			for _, c := range calls {
				if strings.HasSuffix(c, "Push") {
					out = append(out, c[strings.LastIndex(c, " "):])
				}
			}
			return out
		}
		if got, want := pushes(deltas.take()), pushes(lists.take()); !slices.Equal(got, want) {
			t.Errorf("%s: pushes with deltas %v, with lists %v", step.name, got, want)
		}
		view := func(u *updater) []string { return show(u.index.Service("a.example.com", "ns").Shard(shard)) }
		if got, want := view(deltas), view(lists); !slices.Equal(got, want) {
			t.Errorf("%s: the index has %v with deltas, %v with lists", step.name, got, want)
		}
	}
}

func TestDeltaIsTheChange(t *testing.T) {
	u := &updater{index: xdsupdate.NewEndpointIndex()}
	r := memory.New(memory.Options{Updater: deltaUpdater{u}})
	must(t, r.SetService(service("a.example.com", "ns", registry.ClientSideLB)))
	one, two, three, five := endpoint("1.1.1.1"), endpoint("2.2.2.2"), endpoint("3.3.3.3"), endpoint("5.5.5.5")
	u.take()
	must(t, r.SetEndpoints("a.example.com", "ns", []*registry.Endpoint{one, two, five}))
	must(t, r.SetEndpoints("a.example.com", "ns", []*registry.Endpoint{endpoint("1.1.1.1"), three, five}))
	must(t, r.ChangeEndpoints("a.example.com", "ns", []xdsupdate.EndpointChange{
		{Old: endpoint("3.3.3.3"), New: two}, {New: endpoint("4.4.4.4")}, {Old: endpoint("4.4.4.4")}, {Old: one, New: endpoint("1.1.1.1")},
	}))
	must(t, r.ChangeEndpoints("a.example.com", "ns", []xdsupdate.EndpointChange{{New: endpoint("4.4.4.4")}, {Old: endpoint("4.4.4.4")}}))
	want := []string{
		"eds Memory ns/a.example.com [1.1.1.1 2.2.2.2 5.5.5.5] FullPush", // the first list is complete
		"delta ns/a.example.com [-2.2.2.2 +3.3.3.3] IncrementalPush",
		"delta ns/a.example.com [3.3.3.3>2.2.2.2] IncrementalPush",
	}
	if got := u.take(); !slices.Equal(got, want) {
		t.Errorf("the updater was called with\n\t%q\nwant\n\t%q", got, want)
	}
}

// TestUpdaterSeesTheNewState: reads from within the updater show the change, and the updater is
// notified before handlers.
func TestUpdaterSeesTheNewState(t *testing.T) {
	u := &updater{index: xdsupdate.NewEndpointIndex()}
	r := memory.New(memory.Options{Updater: u})
	var seen []string
	u.look = func() {
		s := r.GetService("a.example.com")
		seen = append(seen, fmt.Sprintf("%t %d", s != nil, len(r.InstancesByPort(s, 80))))
	}
	r.AppendServiceHandler(func(_, _ *registry.Service, event registry.Event) {
		seen = append(seen, "handler "+event.String())
	})
	must(t, r.SetService(service("a.example.com", "ns", registry.ClientSideLB)))
	must(t, r.AddEndpoint("a.example.com", "ns", endpoint("1.1.1.1")))
	must(t, r.RemoveService("a.example.com", "ns"))
	want := []string{"true 0", "true 0", "handler add", "true 1", "false 0", "false 0", "handler delete"}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// TestNoUpdater: a nil updater is Discard, and a warning; one that is given is not.
func TestNoUpdater(t *testing.T) {
	var log bytes.Buffer
	r := memory.New(memory.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	handled := 0
	r.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { handled++ })
	must(t, r.SetService(service("a.example.com", "ns", registry.ClientSideLB)))
	must(t, r.SetEndpoints("a.example.com", "ns", []*registry.Endpoint{endpoint("1.1.1.1")}))
	must(t, r.SetWorkload(&registry.WorkloadInstance{Name: "w", Namespace: "ns", Endpoint: endpoint("1.1.1.1")}))
	const want = `level=WARN msg="the registry has no updater, so that nothing is pushed: give it one; ` +
		`xdsupdate.Discard{} means that none is wanted" registry=Memory` + "\n"
	if handled != 1 || !strings.HasSuffix(log.String(), want) || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("%d services were handled, log: %s", handled, log.String())
	}
	log.Reset()
	memory.New(memory.Options{Updater: xdsupdate.Discard{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if log.Len() > 0 {
		t.Errorf("log: %s", log.String())
	}
}
