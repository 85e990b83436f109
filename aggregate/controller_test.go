// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func newRegistry(provider registry.ProviderID, cluster registry.ClusterID) *memory.Registry {
	return memory.New(memory.Options{Provider: provider, Cluster: cluster})
}

func service(host, namespace string, edit ...func(*registry.Service)) *registry.Service {
	s := &registry.Service{
		Hostname: registry.Hostname(host), DefaultAddress: registry.UnspecifiedAddress,
		Ports:      []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		Attributes: registry.ServiceAttributes{Name: host, Namespace: namespace},
	}
	for _, f := range edit {
		f(s)
	}
	return s
}

func vip(cluster registry.ClusterID, addresses ...string) func(*registry.Service) {
	return func(s *registry.Service) {
		s.DefaultAddress = addresses[0]
		s.ClusterVIPs = map[registry.ClusterID][]string{cluster: addresses}
		s.Attributes.ClusterExternalAddresses = map[registry.ClusterID][]string{cluster: {"out-" + addresses[0]}}
	}
}

func accounts(names ...string) func(*registry.Service) {
	return func(s *registry.Service) { s.ServiceAccounts = names }
}

func set(t *testing.T, r *memory.Registry, services ...*registry.Service) {
	t.Helper()
	for _, s := range services {
		if err := r.SetService(s); err != nil {
			t.Fatal(err)
		}
	}
}

// listed returns "provider/namespace/host" for each service.
func listed(services []*registry.Service) []string {
	var out []string
	for _, s := range services {
		out = append(out, fmt.Sprintf("%s/%s", s.Attributes.Provider, s.Key()))
	}
	return out
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestKubernetesClustersMergeByHostname(t *testing.T) {
	one, two := newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.Kubernetes, "c2")
	base := service("a", "ns", vip("c1", "10.0.0.1"), accounts("sa1", "sa2"))
	set(t, one, base, service("only1", "ns"))
	set(t, two, service("a", "ns", vip("c2", "10.0.0.2"), accounts("sa2", "sa3")), service("only2", "ns"))
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(one))
	c.AddRegistry(given(two))

	expect(t, "services", listed(c.Services()), []string{"Kubernetes/ns/a", "Kubernetes/ns/only1", "Kubernetes/ns/only2"})
	got := c.GetService("a")
	if got != c.Services()[0] {
		t.Error("GetService and Services have different services")
	}
	expect(t, "VIPs", got.ClusterVIPs, map[registry.ClusterID][]string{"c1": {"10.0.0.1"}, "c2": {"10.0.0.2"}})
	expect(t, "external addresses", got.Attributes.ClusterExternalAddresses,
		map[registry.ClusterID][]string{"c1": {"out-10.0.0.1"}, "c2": {"out-10.0.0.2"}})
	expect(t, "accounts", got.ServiceAccounts, []string{"sa1", "sa2", "sa3"})
	expect(t, "address", got.DefaultAddress, "10.0.0.1")
	expect(t, "VIPs of the member", one.GetService("a").ClusterVIPs, map[registry.ClusterID][]string{"c1": {"10.0.0.1"}})
	if c.GetService("only1") != one.GetService("only1") {
		t.Error("a service of one cluster is not handed out as it is")
	}

	// The other cluster's addresses go with its service (Istio 1.11 left them).
	if err := two.RemoveService("a", "ns"); err != nil {
		t.Fatal(err)
	}
	expect(t, "VIPs after the removal", c.GetService("a").ClusterVIPs, map[registry.ClusterID][]string{"c1": {"10.0.0.1"}})
	set(t, two, service("a", "ns", vip("c2", "10.0.0.9")))
	expect(t, "VIPs after the return", c.GetService("a").ClusterVIPs["c2"], []string{"10.0.0.9"})
	if err := one.RemoveService("a", "ns"); err != nil {
		t.Fatal(err)
	}
	expect(t, "address without the primary", c.GetService("a").DefaultAddress, "10.0.0.9")
}

// Of what another cluster has, that is added which the first has nothing for, once.
func TestFirstClusterWins(t *testing.T) {
	one, two := newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.Kubernetes, "c2")
	// The first one says itself which address there is in the second cluster.
	set(t, one, service("a", "ns", vip("c2", "10.0.0.1"), accounts("sa1")))
	set(t, two, service("a", "ns", vip("c2", "10.0.0.2"), accounts("sa2", "sa2", "sa1")))
	c := aggregate.NewController()
	c.AddRegistry(given(one))
	c.AddRegistry(given(two))
	got := c.GetService("a")
	expect(t, "VIPs", got.ClusterVIPs, map[registry.ClusterID][]string{"c2": {"10.0.0.1"}})
	expect(t, "external addresses", got.Attributes.ClusterExternalAddresses, map[registry.ClusterID][]string{"c2": {"out-10.0.0.1"}})
	expect(t, "accounts", got.ServiceAccounts, []string{"sa1", "sa2"})
}

// In Istio 1.30 a ServiceEntry hides the Kubernetes service of its host name from
// GetService, although Services has it first.
func TestKubernetesServiceIsNotHiddenByOthers(t *testing.T) {
	external, kubernetes := newRegistry(registry.External, "c1"), newRegistry(registry.Kubernetes, "c1")
	set(t, external, service("a", "ns1", func(s *registry.Service) { s.CreationTime = time.Unix(1, 0) }))
	set(t, kubernetes, service("a", "ns2", func(s *registry.Service) { s.CreationTime = time.Unix(2, 0) }))
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(external))
	c.AddRegistry(given(kubernetes))
	expect(t, "GetService", listed([]*registry.Service{c.GetService("a")}), []string{"Kubernetes/ns2/a"})
	expect(t, "Services", listed(c.Services()), []string{"External/ns1/a", "Kubernetes/ns2/a"})
	expect(t, "order", shards(c), "Kubernetes/c1 External/c1")
	if err := kubernetes.RemoveService("a", "ns2"); err != nil {
		t.Fatal(err)
	}
	expect(t, "GetService", listed([]*registry.Service{c.GetService("a")}), []string{"External/ns1/a"})
}

func shards(c *aggregate.Controller) string {
	var out []string
	for _, r := range c.Registries() {
		out = append(out, xdsupdate.ShardKeyOf(r).String())
	}
	return strings.Join(out, " ")
}

func TestOrderOfRegistries(t *testing.T) {
	c := aggregate.NewController(aggregate.Options{})
	for _, r := range []*memory.Registry{
		newRegistry("Mock", "c1"), newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.External, "c1"),
		newRegistry(registry.Kubernetes, "c2"), newRegistry("Mock", "c2"),
	} {
		c.AddRegistry(given(r))
	}
	expect(t, "order", shards(c), "Kubernetes/c1 Kubernetes/c2 Mock/c1 External/c1 Mock/c2")
	replacement := newRegistry("Mock", "c1")
	c.UpdateRegistry(given(replacement))
	expect(t, "order", shards(c), "Kubernetes/c1 Kubernetes/c2 Mock/c1 External/c1 Mock/c2")
	if c.Registries()[2] != registry.Instance(replacement) {
		t.Error("the registry was not replaced")
	}
	c.DeleteRegistry("c9", registry.Kubernetes)
	c.DeleteRegistry("c1", registry.Kubernetes)
	expect(t, "order", shards(c), "Kubernetes/c2 Mock/c1 External/c1 Mock/c2")
}

// eventLog records the events that handlers get.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (h *eventLog) add(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
}

func (h *eventLog) service(prev, curr *registry.Service, event registry.Event) {
	line := fmt.Sprintf("%s %s %s", event, curr.Hostname, curr.DefaultAddress)
	if prev != nil {
		line += " was " + prev.DefaultAddress
	}
	h.add(line)
}

func (h *eventLog) workload(w *registry.WorkloadInstance, event registry.Event) {
	h.add(fmt.Sprintf("%s %s", event, w.Name))
}

func (h *eventLog) expect(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.lines, want) {
		t.Errorf("events %q, want %q", h.lines, want)
	}
	h.lines = nil
}

func at(address string) func(*registry.Service) {
	return func(s *registry.Service) { s.DefaultAddress = address }
}

// In Istio 1.30 handlers of a cluster get the events of every cluster, and registries
// that were removed or replaced keep notifying.
func TestHandlersOfAClusterGetItsEventsOnly(t *testing.T) {
	one, two := newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.External, "c2")
	set(t, one, service("old", "ns"))
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(one))
	var all, of1, of2 eventLog
	c.AppendServiceHandler(all.service)
	c.AppendServiceHandlerForCluster("c1", of1.service)
	c.AppendServiceHandlerForCluster("c2", of2.service)
	all.expect(t, "add old 0.0.0.0")
	of1.expect(t, "add old 0.0.0.0")
	c.AddRegistry(given(two))
	set(t, one, service("a", "ns", at("1.1.1.1")))
	set(t, two, service("b", "ns", at("2.2.2.2")))
	all.expect(t, "add a 1.1.1.1", "add b 2.2.2.2")
	of1.expect(t, "add a 1.1.1.1")
	of2.expect(t, "add b 2.2.2.2")
	c.UnRegisterHandlersForCluster("c1")
	set(t, one, service("a", "ns", at("1.1.1.2")))
	set(t, two, service("b", "ns", at("2.2.2.3")))
	all.expect(t, "update a 1.1.1.2 was 1.1.1.1", "update b 2.2.2.3 was 2.2.2.2")
	of1.expect(t)
	of2.expect(t, "update b 2.2.2.3 was 2.2.2.2")
}

func TestDeletedRegistryIsHeardNoMore(t *testing.T) {
	r := newRegistry(registry.Kubernetes, "c1")
	set(t, r, service("a", "ns"), service("b", "ns"))
	r.SetNetworkGateways([]registry.NetworkGateway{{Network: "n", Addr: "1.2.3.4", Port: 15443}})
	if err := r.SetWorkload(&registry.WorkloadInstance{Namespace: "ns", Name: "w", Endpoint: &registry.Endpoint{Addresses: []string{"9.9.9.9"}}}); err != nil {
		t.Fatal(err)
	}
	index := &updater{}
	c := aggregate.NewController(aggregate.Options{Updater: index})
	c.AddRegistry(given(r))
	var services, workloads, gateways eventLog
	c.AppendServiceHandler(services.service)
	c.AppendWorkloadHandler(workloads.workload)
	c.AppendNetworkGatewayHandler(func() { gateways.add("gateways") })
	services.expect(t, "add a 0.0.0.0", "add b 0.0.0.0")
	workloads.expect(t, "add w")

	// When handlers get the end, reads show it and the shard is gone.
	c.AppendServiceHandler(func(_, _ *registry.Service, event registry.Event) {
		if event == registry.EventDelete && (len(c.Services()) > 0 || len(index.removed) != 1) {
			t.Errorf("in the handler: %d services, removed shards %v", len(c.Services()), index.removed)
		}
	})
	c.DeleteRegistry("c1", registry.Kubernetes)
	services.expect(t, "delete a 0.0.0.0", "delete b 0.0.0.0")
	workloads.expect(t, "delete w")
	gateways.expect(t, "gateways")
	expect(t, "removed", index.removed, []xdsupdate.ShardKey{{Cluster: "c1", Provider: registry.Kubernetes}})
	expect(t, "gateways", len(c.NetworkGateways()), 0)

	set(t, r, service("c", "ns"))
	r.SetNetworkGateways(nil)
	if err := r.RemoveWorkload(registry.WorkloadKey{Namespace: "ns", Name: "w"}); err != nil {
		t.Fatal(err)
	}
	services.expect(t)
	workloads.expect(t)
	gateways.expect(t)
	expect(t, "services", listed(c.Services()), nil)

	// It may come back.
	c.AddRegistry(given(r))
	services.expect(t, "add a 0.0.0.0", "add b 0.0.0.0", "add c 0.0.0.0")
	set(t, r, service("d", "ns"))
	services.expect(t, "add d 0.0.0.0")
}

// updater notes removed shards.
type updater struct {
	xdsupdate.Discard
	removed []xdsupdate.ShardKey
}

func (u *updater) RemoveShard(shard xdsupdate.ShardKey) { u.removed = append(u.removed, shard) }

func TestReplacementIsOneStep(t *testing.T) {
	before, after := newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.Kubernetes, "c1")
	set(t, before, service("same", "ns", at("1.1.1.1")), service("gone", "ns"), service("changed", "ns", accounts("old")))
	set(t, after, service("same", "ns", at("1.1.1.1")), service("new", "ns"), service("changed", "ns", accounts("new")))
	index := &updater{}
	c := aggregate.NewController(aggregate.Options{Updater: index})
	c.AddRegistry(given(before))
	var h eventLog
	c.AppendServiceHandler(h.service)
	h.expect(t, "add changed 0.0.0.0", "add gone 0.0.0.0", "add same 1.1.1.1")
	c.UpdateRegistry(given(after))
	h.expect(t, "update changed 0.0.0.0 was 0.0.0.0", "add new 0.0.0.0", "delete gone 0.0.0.0")
	expect(t, "services", listed(c.Services()), listed(after.Services()))
	set(t, before, service("late", "ns"))
	h.expect(t)
	if c.DeleteRegistryIfCurrent(before) {
		t.Error("the predecessor was deleted")
	}
	expect(t, "removed", index.removed, nil)
	if !c.DeleteRegistryIfCurrent(after) {
		t.Error("the successor was not deleted")
	}
	expect(t, "removed", index.removed, []xdsupdate.ShardKey{{Cluster: "c1", Provider: registry.Kubernetes}})
	h.expect(t, "delete changed 0.0.0.0", "delete new 0.0.0.0", "delete same 1.1.1.1")
}

func TestProxiesAreServedByTheirCluster(t *testing.T) {
	k1, k2 := newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.Kubernetes, "c2")
	external := newRegistry(registry.External, "c1")
	for i, r := range []*memory.Registry{k1, k2, external} {
		host := fmt.Sprint("s", i)
		set(t, r, service(host, "ns"))
		e := &registry.Endpoint{Addresses: []string{"10.0.0.1"}, EndpointPort: 80, ServicePort: 80, ServicePortName: "http"}
		if err := r.AddEndpoint(registry.Hostname(host), "ns", e); err != nil {
			t.Fatal(err)
		}
	}
	labels := func(v string) *registry.WorkloadInstance {
		return &registry.WorkloadInstance{Namespace: "ns", Name: "w", Endpoint: &registry.Endpoint{
			Addresses: []string{"10.0.0.1"}, Shared: &registry.EndpointAttributes{Labels: registry.Labels{"from": v}},
		}}
	}
	for r, v := range map[*memory.Registry]string{k2: "k2", external: "external"} {
		if err := r.SetWorkload(labels(v)); err != nil {
			t.Fatal(err)
		}
	}
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(external))
	c.AddRegistry(given(k1))
	c.AddRegistry(given(k2))
	for _, test := range []struct {
		cluster registry.ClusterID
		hosts   string
		labels  string
	}{
		{"c1", "s0 s2", "external"}, {"c2", "s1 s2", "k2"}, {"c3", "s2", "external"}, {"", "s0 s1 s2", "k2"},
	} {
		proxy := &registry.Proxy{IPAddresses: []string{"10.0.0.1"}, Namespace: "ns", ClusterID: test.cluster}
		var hosts []string
		for _, i := range c.GetProxyServiceInstances(proxy) {
			hosts = append(hosts, string(i.Service.Hostname))
		}
		expect(t, "hosts of a proxy in "+string(test.cluster), strings.Join(hosts, " "), test.hosts)
		expect(t, "labels of a proxy in "+string(test.cluster), c.GetProxyWorkloadLabels(proxy)["from"], test.labels)
	}
	if got := c.GetProxyWorkloadLabels(&registry.Proxy{IPAddresses: []string{"10.9.9.9"}}); got != nil {
		t.Errorf("labels of an unknown proxy = %v, want nil", got)
	}
}

// A registry of another cluster may know something else under the same address.
func TestLabelsComeFromTheProxysClusterFirst(t *testing.T) {
	c := aggregate.NewController(aggregate.Options{})
	for _, cluster := range []registry.ClusterID{"c1", "c2"} {
		r := newRegistry("Mock", cluster)
		err := r.SetWorkload(&registry.WorkloadInstance{Namespace: "ns", Name: "w", Endpoint: &registry.Endpoint{
			Addresses: []string{"10.0.0.1"}, Shared: &registry.EndpointAttributes{Labels: registry.Labels{"from": string(cluster)}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		c.AddRegistry(given(r))
	}
	for cluster, want := range map[registry.ClusterID]string{"c1": "c1", "c2": "c2", "c3": "c1", "": "c1"} {
		proxy := &registry.Proxy{IPAddresses: []string{"10.0.0.1"}, Namespace: "ns", ClusterID: cluster}
		expect(t, "labels of a proxy in "+string(cluster), c.GetProxyWorkloadLabels(proxy)["from"], want)
	}
}

func TestNetworkGatewaysOfAll(t *testing.T) {
	one, two := newRegistry(registry.Kubernetes, "c1"), newRegistry(registry.Kubernetes, "c2")
	a, b := registry.NetworkGateway{Network: "n1", Addr: "1.1.1.1", Port: 1}, registry.NetworkGateway{Network: "n2", Addr: "2.2.2.2", Port: 2}
	one.SetNetworkGateways([]registry.NetworkGateway{b, a})
	two.SetNetworkGateways([]registry.NetworkGateway{a})
	c := aggregate.NewController(aggregate.Options{})
	var h eventLog
	cancel := c.SubscribeNetworkGateways(func() { h.add(fmt.Sprint(len(c.NetworkGateways()))) })
	c.AddRegistry(given(one))
	h.expect(t, "2")
	c.AddRegistry(given(two))
	h.expect(t, "2")
	expect(t, "gateways", c.NetworkGateways(), []registry.NetworkGateway{a, b})
	one.SetNetworkGateways(nil)
	h.expect(t, "1")
	cancel()
	two.SetNetworkGateways(nil)
	h.expect(t)
}
