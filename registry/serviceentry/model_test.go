// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

var (
	modelSeeds = flag.Int("model.seeds", 10, "number of random histories of the model test")
	modelFirst = flag.Uint64("model.first", 1, "seed of the first of them")
)

const modelSteps = 250

// seedFile holds seeds that failed once.
const seedFile = "testdata/model-seeds.txt"

// TestModel makes random histories and compares, after every delivery, all that
// the registry shows and all that it said with what an oracle computes from
// scratch.
func TestModel(t *testing.T) {
	seeds := failedSeeds(t)
	histories := *modelSeeds
	if testing.Short() {
		histories = min(histories, 3)
	}
	for i := range histories {
		seeds = append(seeds, *modelFirst+uint64(i))
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			runHistory(t, seed)
		})
	}
}

func failedSeeds(t *testing.T) []uint64 {
	t.Helper()
	f, err := os.Open(seedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []uint64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if seed, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil {
			out = append(out, seed)
		}
	}
	return out
}

func runHistory(t *testing.T, seed uint64) {
	t.Helper()
	h := &history{rand: rand.New(rand.NewPCG(seed, 0))}
	m := newModelSystem(t, seed%2 == 0, seed/2%modelKinds)
	before := m.world.outcome()
	for step := range modelSteps {
		// Often one change at a time, sometimes a burst.
		for range 1 + h.rand.IntN(4)*h.rand.IntN(2) {
			h.step(m)
		}
		m.deliver()
		after := m.world.outcome()
		m.check(before, after)
		if step%8 == 0 {
			for _, d := range explain.Verify(m.registry) {
				t.Errorf("Verify: %s", d)
			}
			m.checkExplanations(after)
		}
		if t.Failed() {
			t.Fatalf("step %d of seed %d; the last changes were:\n%s", step, seed, strings.Join(h.log[max(0, len(h.log)-8):], "\n"))
		}
		before = after
	}
}

// modelSystem is a registry, its inputs, and everything that watches it.
type modelSystem struct {
	t        *testing.T
	world    *world
	cache    *memory.Controller
	registry *serviceentry.Controller
	recorder *xdstest.Recorder
	// fed hands over, in order, what changed since the last delivery besides
	// configs: workloads of others and the mesh. Each is a batch.
	fed []func()
	// batches counts those of the last delivery; touched are the hosts of the
	// ServiceEntries that were written since.
	batches int
	touched map[string]bool
	written bool
	// byHash: services get addresses.
	byHash bool
	// services and workloads are what handlers know.
	services  map[string]*registry.Service
	workloads map[string]*registry.WorkloadInstance
}

// The kinds of registries; a seed has one of them. Most have the default options.
const (
	byHash = iota
	workloadEntriesOnly
	ignoreHealth
	askNetworks
	modelKinds = 10
)

func newModelSystem(t *testing.T, deltas bool, kind uint64) *modelSystem {
	t.Helper()
	m := &modelSystem{
		t: t, world: newWorld("c1"),
		cache: memory.NewController(memory.Make(istio.Schemas(), memory.Options{
			SkipValidation: true, DetectMutations: true,
		})),
		touched:  map[string]bool{},
		services: map[string]*registry.Service{}, workloads: map[string]*registry.WorkloadInstance{},
	}
	var updater xdsupdate.XDSUpdater
	if deltas {
		r := &xdstest.DeltaRecorder{}
		m.recorder, updater = &r.Recorder, r
	} else {
		m.recorder = &xdstest.Recorder{}
		updater = m.recorder
	}
	m.world.workloadEntriesOnly, m.world.ignoreHealth = kind == workloadEntriesOnly, kind == ignoreHealth
	options := serviceentry.Options{
		ClusterID: "c1", WorkloadEntriesOnly: kind == workloadEntriesOnly, IgnoreHealth: kind == ignoreHealth,
	}
	if m.world.askNetworks = kind == askNetworks; m.world.askNetworks {
		options.NetworkOf = networkByRules
	}
	m.byHash, m.world.byHash = kind == byHash, kind == byHash
	if m.byHash {
		options.AddressAllocation = serviceentry.AllocateByHash
	}
	m.registry = serviceentry.New(m.cache, updater, options)
	m.registry.AppendServiceHandler(m.serviceChanged)
	m.registry.AppendWorkloadHandler(m.workloadChanged)
	m.cache.Drain()
	return m
}

func (m *modelSystem) must(_ string, err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *modelSystem) create(c configstore.Config) { m.touch(c); m.must(m.cache.Create(c)) }
func (m *modelSystem) update(c configstore.Config) { m.touch(c); m.must(m.cache.Update(c)) }
func (m *modelSystem) delete(c configstore.Config) {
	m.touch(c)
	m.must("", m.cache.Delete(c.GroupVersionKind, c.Name, c.Namespace, nil))
}

func (m *modelSystem) touch(c configstore.Config) {
	m.written = true
	if spec, ok := c.Spec.(*networking.ServiceEntry); ok {
		for _, host := range spec.GetHosts() {
			m.touched[c.Namespace+"/"+host] = true
		}
	}
}

func (m *modelSystem) feed(wi *registry.WorkloadInstance, event registry.Event) {
	m.fed = append(m.fed, func() { m.registry.WorkloadInstanceHandler(wi, event) })
}

func (m *modelSystem) setMesh(trustDomain string, visibility registry.Visibility) {
	m.fed = append(m.fed, func() {
		mesh := serviceentry.Mesh{TrustDomain: trustDomain}
		if visibility != "" {
			mesh.Visibility = []serviceentry.VisibilityRule{
				{Namespaces: []registry.Labels{{"visible": "yes"}}, Visibility: registry.VisibilityPublic},
				{Visibility: visibility},
			}
		}
		m.registry.UpdateMesh(mesh)
	})
}

// setNamespace sets the annotation of a namespace; none for "".
func (m *modelSystem) setNamespace(name, distribution string) {
	m.world.namespaces[name] = distribution
	m.fed = append(m.fed, func() {
		if distribution == "" {
			m.registry.DeleteNamespace(name)
		} else {
			m.registry.UpdateNamespace(serviceentry.Namespace{
				Name: name, Annotations: distributed(distribution), Labels: visibleIf(distribution),
			})
		}
	})
}

// visibleIf returns the labels of a namespace with an annotation for the distribution.
func visibleIf(distribution string) registry.Labels {
	if distribution != "PreferSameZone" {
		return nil
	}
	return registry.Labels{"visible": "yes"}
}

// networkByRules is the NetworkOf of a registry that has one.
func networkByRules(address string, labels registry.Labels) string {
	switch {
	case labels["v"] == "2":
		return "n-two"
	case address == "10.0.0.3" || address == "2001:db8::1":
		return "n-range"
	default:
		return ""
	}
}

func (m *modelSystem) deliver() {
	m.batches = len(m.fed)
	if m.written {
		m.batches++
	}
	m.cache.Drain()
	for _, f := range m.fed {
		f()
	}
	m.fed, m.written = nil, false
}

// serviceChanged keeps what a handler of services knows, and checks that each
// event fits.
func (m *modelSystem) serviceChanged(prev, curr *registry.Service, event registry.Event) {
	name := curr.ResourceName()
	switch known := m.services[name]; event {
	case registry.EventAdd:
		if known != nil || prev != nil {
			m.t.Errorf("service handler: add of %s, known before: %v, prev: %v", name, known != nil, prev)
		}
		m.services[name] = curr
	case registry.EventUpdate:
		// A target port that changed is an update, too, although services do not show it.
		if known == nil || prev != known {
			m.t.Errorf("service handler: update of %s, known before: %v, prev is that: %v", name, known != nil, prev == known)
		}
		m.services[name] = curr
	case registry.EventDelete:
		if known != curr || prev != nil {
			m.t.Errorf("service handler: delete of %s, known before: %v, prev: %v", name, known != nil, prev)
		}
		delete(m.services, name)
	}
}

func (m *modelSystem) workloadChanged(wi *registry.WorkloadInstance, event registry.Event) {
	name := wi.Namespace + "/" + wi.Name
	known := m.workloads[name]
	if (known == nil) != (event == registry.EventAdd) {
		m.t.Errorf("workload handler: %s of %s, known before: %v", event, name, known != nil)
	}
	if event == registry.EventDelete {
		if known != wi {
			m.t.Errorf("workload handler: delete of %s not with the last state that was notified", name)
		}
		delete(m.workloads, name)
		return
	}
	if known.Equal(wi) {
		m.t.Errorf("workload handler: %s of %s, which did not change", event, name)
	}
	m.workloads[name] = wi
}

// check compares everything with the oracle.
func (m *modelSystem) check(before, after *outcome) {
	m.t.Helper()
	m.checkServices(after)
	m.checkEndpoints(after)
	m.checkProxies(after)
	m.checkCalls(before, after, m.recorder.Take())
	clear(m.touched)
	notified := map[string]string{}
	for name, wi := range m.workloads {
		notified[name] = describeWorkload(wi.Endpoint, wi.PortMap)
	}
	m.equal("workloads that handlers know", after.announced, notified)
}

func (m *modelSystem) equal(what string, want, got any) {
	m.t.Helper()
	if !reflect.DeepEqual(want, got) { // much cheaper than a diff, which is empty nearly always
		m.t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

func (m *modelSystem) checkServices(after *outcome) {
	m.t.Helper()
	shown, notified := map[string][]string{}, map[string][]string{}
	all := m.registry.Services()
	for _, s := range all {
		shown[s.Key()] = append(shown[s.Key()], m.showService(s))
	}
	for _, s := range m.services {
		notified[s.Key()] = append(notified[s.Key()], m.showService(s))
	}
	for _, byKey := range []map[string][]string{shown, notified} {
		for _, list := range byKey {
			slices.Sort(list)
		}
	}
	m.equal("Services", after.services, shown)
	m.equal("services that handlers know", after.services, notified)
	if !slices.IsSortedFunc(all, registry.CompareServices) {
		m.t.Error("Services is not sorted")
	}
	m.checkGetService(all)
	m.checkAllocation(all)
}

// checkAllocation: services without an address get one in byHash, those of a host
// the same, those of two hosts never.
func (m *modelSystem) checkAllocation(all []*registry.Service) {
	m.t.Helper()
	if !m.byHash {
		return
	}
	owner, address := map[string]string{}, map[string]string{}
	for _, s := range all {
		eligible := s.DefaultAddress == registry.UnspecifiedAddress && s.Resolution != registry.Passthrough
		for _, a := range []string{s.AutoAllocatedIPv4, s.AutoAllocatedIPv6} {
			if (a != "") != eligible || a != "" && owner[a] != "" && owner[a] != s.Key() {
				m.t.Errorf("%s has the address %q, should have one: %t, owner: %q", s.ResourceName(), a, eligible, owner[a])
			}
			owner[a] = s.Key()
		}
		if other := address[s.Key()]; eligible && other != "" && other != s.AutoAllocatedIPv4 {
			m.t.Errorf("%s has the addresses %s and %s", s.Key(), other, s.AutoAllocatedIPv4)
		} else if eligible {
			address[s.Key()] = s.AutoAllocatedIPv4
		}
	}
}

// checkGetService: the oldest service of a host name wins, then namespace, name and
// the order of addresses.
func (m *modelSystem) checkGetService(all []*registry.Service) {
	m.t.Helper()
	for _, host := range []registry.Hostname{"one.example.com", "two.example.com", "none.example.com"} {
		var best *registry.Service
		for _, s := range all {
			if s.Hostname != host {
				continue
			}
			if best == nil || older(s, best) {
				best = s
			}
		}
		got := m.registry.GetService(host)
		switch {
		case got == nil || best == nil:
			if got != best {
				m.t.Errorf("GetService(%s) = %v, want %v", host, got, best)
			}
		case got.Attributes.ObjectName != best.Attributes.ObjectName || got.Attributes.Namespace != best.Attributes.Namespace:
			m.t.Errorf("GetService(%s) = %s, want %s", host, got.ResourceName(), best.ResourceName())
		case !slices.Contains(all, got):
			m.t.Errorf("GetService(%s) is none of Services", host)
		}
	}
}

func older(s, t *registry.Service) bool {
	if c := s.CreationTime.Compare(t.CreationTime); c != 0 {
		return c < 0
	}
	if c := strings.Compare(s.Attributes.Namespace, t.Attributes.Namespace); c != 0 {
		return c < 0
	}
	return s.Attributes.ObjectName < t.Attributes.ObjectName
}

// checkEndpoints compares the registry's own answer and the index that its calls
// lead to.
func (m *modelSystem) checkEndpoints(after *outcome) {
	m.t.Helper()
	shown := map[string][]string{}
	for _, s := range m.registry.Services() {
		list := []string{}
		instances := m.registry.InstancesByPort(s, 0)
		for _, i := range instances {
			list = append(list, describeEndpoint(i.Endpoint))
		}
		slices.Sort(list)
		shown[s.Key()] = list
	}
	indexed := map[string][]string{}
	for key := range after.endpoints {
		indexed[key] = []string{}
	}
	for service := range m.recorder.Index().All() {
		key := service.Namespace() + "/" + string(service.Hostname())
		if _, exists := after.endpoints[key]; !exists {
			m.t.Errorf("the index still has %s", key)
		}
		for e := range service.All() {
			indexed[key] = append(indexed[key], describeEndpoint(e))
		}
		slices.Sort(indexed[key])
	}
	m.equal("InstancesByPort", after.endpoints, shown)
	m.equal("endpoint index", after.endpoints, indexed)
}

func (m *modelSystem) checkProxies(after *outcome) {
	m.t.Helper()
	for _, ip := range modelIPs {
		for _, namespace := range append([]string{""}, modelNamespaces...) {
			proxy := &registry.Proxy{IPAddresses: []string{ip}, Namespace: namespace}
			var got []string
			for _, i := range m.registry.GetProxyServiceInstances(proxy) {
				got = append(got, describeInstance(i.Service.ResourceName(), i.Endpoint))
			}
			slices.Sort(got)
			m.equal(fmt.Sprintf("instances of a proxy at %s in %q", ip, namespace), after.instances(ip, namespace), got)
			want, labels := after.labels(ip, namespace), m.registry.GetProxyWorkloadLabels(proxy)
			if !want.Equal(labels) || (want == nil) != (labels == nil) {
				m.t.Errorf("labels of a proxy at %s in %q: %v, want %v", ip, namespace, labels, want)
			}
		}
	}
}
