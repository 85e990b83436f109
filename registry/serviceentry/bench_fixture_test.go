// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"runtime"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Each benchmark has a sub-benchmark "limit" beside "registry": the unavoidable
// work alone, without validation, events, locks or the semantics of an API. What
// counts is the ratio of the two, and how the figures grow with n. cpu-ns/op is
// the time of all threads, garbage collection included.

// stride is how far apart the keys are that are visited one after the other.
const stride = 7919

var loads = []int{1000, 10_000, 50_000}

// listUpdater does what an xDS server does with endpoints, and counts the rest.
// It takes complete lists only.
type listUpdater struct {
	index *xdsupdate.EndpointIndex
	// endpoints and configs count the calls that change endpoints and ask for
	// pushes.
	endpoints, configs int
}

func newListUpdater() *listUpdater { return &listUpdater{index: xdsupdate.NewEndpointIndex()} }

func (u *listUpdater) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	u.index.UpdateServiceEndpoints(shard, hostname, namespace, endpoints)
	u.endpoints++
}

func (u *listUpdater) EDSCacheUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	u.index.UpdateServiceEndpoints(shard, hostname, namespace, endpoints)
}

func (u *listUpdater) SvcUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	if event == registry.EventDelete {
		u.index.DeleteServiceShard(shard, hostname, namespace)
	}
}

func (u *listUpdater) ConfigUpdate(*xdsupdate.PushRequest)    { u.configs++ }
func (u *listUpdater) ProxyUpdate(registry.ClusterID, string) {}
func (u *listUpdater) RemoveShard(shard xdsupdate.ShardKey)   { u.index.RemoveShard(shard) }

// updater returns u as it is, or as one that takes deltas as well.
func (u *listUpdater) updater(deltas bool) xdsupdate.XDSUpdater {
	if deltas {
		return deltaUpdater{u}
	}
	return u
}

// deltaUpdater is a listUpdater that takes deltas as well.
type deltaUpdater struct{ *listUpdater }

func (u deltaUpdater) EDSDeltaUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange) {
	u.index.UpdateEndpoints(shard, hostname, namespace, changes)
	u.endpoints++
}

// plant is a registry with everything around it that a program has.
type plant struct {
	configs  *memory.Controller
	registry *serviceentry.Controller
	updater  *listUpdater
}

func newStore() *memory.Store {
	return memory.Make(istio.Schemas(), memory.Options{SkipValidation: true})
}

func newPlant(deltas bool) *plant { return newPlantOn(newStore(), deltas) }

func newPlantOn(store *memory.Store, deltas bool) *plant {
	p := &plant{configs: memory.NewController(store), updater: newListUpdater()}
	p.registry = serviceentry.New(p.configs, p.updater.updater(deltas), serviceentry.Options{ClusterID: "c1"})
	p.configs.Drain()
	return p
}

// create, update and delete change an object, with all the effects, and report
// whether that was possible.
func (p *plant) create(c configstore.Config) bool {
	_, err := p.configs.Create(c)
	p.configs.Drain()
	return err == nil
}

func (p *plant) update(c configstore.Config) bool {
	_, err := p.configs.Update(c)
	p.configs.Drain()
	return err == nil
}

func (p *plant) delete(c configstore.Config) bool {
	err := p.configs.Delete(c.GroupVersionKind, c.Name, c.Namespace, nil)
	p.configs.Drain()
	return err == nil
}

// fill commits configs without delivering them.
func fill(b *testing.B, store *memory.Store, configs []configstore.Config) {
	b.Helper()
	mutations := make([]configstore.Mutation, len(configs))
	for i, c := range configs {
		mutations[i] = configstore.Mutation{Op: configstore.OpCreate, Config: c}
	}
	if _, err := store.Apply(mutations...); err != nil {
		b.Fatal(err)
	}
}

// standardEntry is the ServiceEntry number i: one host, one address, two ports,
// five endpoints with labels of their own. Its endpoints depend on the round.
func standardEntry(i, round int) configstore.Config {
	spec := &networking.ServiceEntry{
		Hosts:     []string{fmt.Sprintf("svc-%d.example.com", i)},
		Addresses: []string{ipOf(10, i)},
		Ports: []*networking.ServicePort{
			{Number: 80, Name: "http", Protocol: "HTTP"}, {Number: 9090, Name: "grpc", Protocol: "GRPC"},
		},
		Location: networking.ServiceEntry_MESH_INTERNAL, Resolution: networking.ServiceEntry_STATIC,
	}
	for e := range 5 {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{
			Address: ipOf(20+round, 5*i+e), Labels: sixLabels(fmt.Sprintf("svc-%d", i)),
			Locality: "region/zone/subzone", ServiceAccount: "default", Weight: 1,
		})
	}
	return configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.ServiceEntry, Name: fmt.Sprintf("se-%d", i), Namespace: fmt.Sprintf("ns-%02d", i%100),
		},
		Spec: spec,
	}
}

func standardEntries(n int) []configstore.Config {
	out := make([]configstore.Config, n)
	for i := range out {
		out[i] = standardEntry(i, 0)
	}
	return out
}

func sixLabels(app string) map[string]string {
	return map[string]string{
		"app": app, "version": "v1", "team": "payments", "env": "production", "tier": "backend", "track": "stable",
	}
}

func ipOf(first, i int) string {
	return fmt.Sprintf("%d.%d.%d.%d", first, i>>16&255, i>>8&255, i&255)
}

// measure runs an operation, which reports whether it had the expected result, as
// a benchmark of this name.
func measure(b *testing.B, name string, operation func(i int) bool) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		runtime.GC()
		start, i := cputime.Used(), 0
		for b.Loop() {
			if !operation(i) {
				b.Fatal("unexpected result")
			}
			i++
		}
		b.ReportMetric(float64(cputime.Used()-start)/float64(b.N), "cpu-ns/op")
	})
}

// liveHeap returns the bytes that are in use.
func liveHeap() float64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func sizeName(n int) string { return fmt.Sprintf("n=%d", n) }
