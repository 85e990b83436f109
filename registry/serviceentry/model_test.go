// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const modelSteps = 250

// TestModel makes random histories and compares, after every delivery, all that
// the registry shows and all that it said with what an oracle computes from
// scratch.
func TestModel(t *testing.T) {
	for _, seed := range histories.Seeds(t, 15) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			runHistory(t, seed)
		})
	}
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
				{Matches: having(registry.Labels{"visible": "yes"}), Visibility: registry.VisibilityPublic},
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
