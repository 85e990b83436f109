// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestRandomHistories plays random histories of objects with few names and addresses. After each
// change the content and the reports of the registry equal a computation from the current objects.
// At the end a new registry, which receives only these objects in another order, has the same
// content.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	for _, seed := range histories.Seeds(t, 16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playHistory(t, seed, 0, 60)
		})
	}
}

// TestHistoryAfterLargeBatch is TestRandomHistories after many Services, with endpoints, at once.
func TestHistoryAfterLargeBatch(t *testing.T) {
	t.Parallel()
	for _, many := range []int{300, 5000} {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			if many > 300 {
				tier.OnlyFull(t, "a large batch")
			}
			t.Parallel()
			playHistory(t, 3, many, max(2, tier.Share(20)))
		})
	}
}

// manySteps stores Services and their slices at once that no other step changes.
func manySteps(n int) step {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `
apiVersion: v1
kind: Service
metadata: {name: many-%[1]d, namespace: many}
spec: {type: ClusterIP, clusterIP: 10.9.%[2]d.%[3]d, ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: many-%[1]d, namespace: many, labels: {kubernetes.io/service-name: many-%[1]d}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.8.%[2]d.%[3]d], conditions: {ready: true}}]
---`, i, i/250, i%250)
	}
	all := text.String()
	return step{Apply: &all, Together: true}
}

func playHistory(t *testing.T, seed uint64, many, steps int) {
	t.Helper()
	h := &history{
		Rand: rand.New(rand.NewPCG(seed, 0)), discovery: seed%4 == 3, clusters: []string{""}, slices: map[string][]object{},
	}
	s := &scenario{Options: scenarioOpts{ClusterID: "cluster-1", ServiceEntries: seed%2 == 1}, Proxies: h.proxies()}
	if seed%4 >= 2 {
		h.clusters = append(h.clusters, "cluster-2")
		s.Clusters = []clusterSpec{{ID: "cluster-2", Deferred: seed%8 >= 4}}
		h.connected = !s.Clusters[0].Deferred
	}
	s.Options.Features.DualStack = seed%3 == 2
	s.Options.Features.ProxyFindPodByIP = seed%7 == 3
	sys, err := newSystem(s, seed%5 > 1)
	if err != nil {
		t.Fatal(err)
	}
	c := newComparison(sys)
	sys.start()
	for i := range steps {
		st := h.step()
		if i == 0 && many > 0 {
			st = manySteps(many)
		}
		if err := sys.step(st, func() { c.moment(&st) }); err != nil {
			t.Fatal(err)
		}
		c.workloadsAreRight()
		c.proxiesAreRight()
		c.next(nil)
		if len(c.differences) > 0 {
			t.Fatalf("after %s:\n%s", describe(st), c.differences[0])
		}
	}
	sameAnew(t, sys)
	for _, cluster := range sys.clusters {
		if cluster.kube == nil {
			continue
		}
		if wrong, err := cluster.kube.Verify(t.Context()); err != nil || len(wrong) > 0 {
			t.Errorf("Verify of %s: %v, %v", cluster.id, wrong, err)
		}
	}
	if sys.entries != nil {
		for _, d := range explain.Verify(sys.entries) {
			t.Error(d)
		}
	}
}

// workloadsAreRight compares the workloads that handlers have received with the expected ones.
func (c *comparison) workloadsAreRight() {
	for _, w := range c.workloads {
		c.notify(w)
	}
	c.compareToldPods()
}

// sameAnew compares a registry with a new one, which receives only the current objects in an
// arbitrary order.
func sameAnew(t *testing.T, sys *system) {
	t.Helper()
	for range 3 {
		for _, c := range sys.clusters {
			if c.kube != nil {
				clusterSameAnew(t, sys, c)
			}
		}
	}
}

func clusterSameAnew(t *testing.T, sys *system, c *cluster) {
	t.Helper()
	index := xdsupdate.NewEndpointIndex()
	fresh := kube.New(nil, &recorder{index: index}, kubeOptionsOf(sys, c))
	for _, d := range c.objects { // in the order of a map
		if visible(d.object) {
			fresh.Put(d.object.DeepCopyObject())
		}
	}
	from := sys.entries
	if c != sys.clusters[0] {
		from = c.remote
	}
	if from != nil {
		from.SubscribeWorkloads(fresh.WorkloadInstanceHandler)()
	}
	fresh.Drain()
	if diff := cmp.Diff(viewAll(c.kube, sys.recorder.index), viewAll(fresh, index)); diff != "" {
		t.Errorf("a registry that sees the same objects anew shows (+) something else than the one with the past (-):\n%s", diff)
	}
}

func kubeOptionsOf(sys *system, c *cluster) kube.Options {
	o := sys.kubeOptions(c)
	o.Mesh = sys.mesh(c)
	return o
}

// viewAll returns everything that a registry shows, as texts.
func viewAll(k *kube.Controller, index *xdsupdate.EndpointIndex) map[string][]string {
	out := map[string][]string{}
	for _, s := range k.Services() {
		out["services"] = append(out["services"], viewService(s).text())
		var endpoints []string
		for _, i := range k.InstancesByPort(s, 0) {
			endpoints = append(endpoints, viewEndpoint(i.Endpoint).text())
		}
		out["instances of "+string(s.Hostname)] = endpoints
		shard := index.Service(s.Hostname, s.Attributes.Namespace).Shard(xdsupdate.ShardKeyOf(k))
		for _, e := range shard {
			out["index of "+string(s.Hostname)] = append(out["index of "+string(s.Hostname)], viewEndpoint(e).text())
		}
	}
	for _, g := range k.NetworkGateways() {
		out["gateways"] = append(out["gateways"], viewGateway(g).text())
	}
	cancel := k.SubscribeWorkloads(func(w *registry.WorkloadInstance, _ registry.Event) {
		out["workloads"] = append(out["workloads"], viewWorkload(w).text())
	})
	k.Drain()
	cancel()
	return out
}

func describe(st step) string {
	switch {
	case st.Lifecycle != nil:
		return st.Lifecycle.Op
	case st.Apply != nil:
		return *st.Apply
	case st.Delete != nil:
		return "delete " + st.Delete.String()
	case st.MeshConfig != nil:
		return "mesh " + *st.MeshConfig
	default:
		return "networks " + *st.MeshNetworks
	}
}
