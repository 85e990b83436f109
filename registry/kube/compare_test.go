// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
)

// comparison is one replay with its expectations. The results of the library are compared twice:
// after every document with a computation from the current objects (world), and after every step
// with the recording, unless a row of DECISIONS.md says that the recording depends on the past. The
// rows are the functions of rules_test.go.
type comparison struct {
	sys         *system
	differences []string

	// worlds are the worlds of the connected clusters after the last document.
	worlds map[string]*world
	// foreign are the workloads that each cluster was given.
	right rightState
	// past is the knowledge of the rows about earlier states.
	past past

	gotBefore, recordedBefore indexState
	accountsBefore            map[string]string
	gatewaysBefore            set
	gotGatewaysBefore         set
	notifiedBefore            map[string]record
	notified                  map[string]record
	calls                     []call
	services                  []serviceCall
	workloads                 []workloadCall
	gatewayCalls              int
}

// rightState is what should be, by the objects that exist.
type rightState struct {
	endpoints map[indexKey]map[string]modelEndpoint
	services  map[string]map[string]record // by cluster and host name
	gateways  set
	workloads map[string]map[string]record // by cluster and namespace/name
}

func newComparison(sys *system) *comparison {
	return &comparison{
		sys: sys, worlds: map[string]*world{}, past: newPast(), notified: map[string]record{}, notifiedBefore: map[string]record{},
		gotBefore: indexState{}, recordedBefore: indexState{}, accountsBefore: map[string]string{},
	}
}

func (c *comparison) report(format string, args ...any) {
	c.differences = append(c.differences, fmt.Sprintf(format, args...))
}

// kubeOptions returns the options of a cluster's registry.
func (sys *system) kubeOptions(cl *cluster) kube.Options {
	o := sys.scenario.Options
	return kube.Options{
		ClusterID: cl.id, DomainSuffix: o.DomainSuffix, SystemNamespace: o.SystemNamespace, DualStack: o.Features.DualStack,
	}
}

// world returns the inputs of a cluster's registry.
func (c *comparison) world(cl *cluster) *world {
	w := newWorld(c.sys.kubeOptions(cl), c.sys.mesh(cl))
	for _, d := range cl.objects {
		if visible(d.object) {
			w.put(d.object)
		}
	}
	w.narrow()
	from := c.sys.entries
	if cl != c.sys.clusters[0] {
		from = cl.remote
	}
	if from != nil {
		// Its handlers have been notified of these; that they are right is the concern of
		// that registry's own tests.
		cancel := from.SubscribeWorkloads(func(wi *registry.WorkloadInstance, _ registry.Event) { w.foreign[wi.Key()] = wi })
		cancel()
	}
	return w
}

// moment compares the content of the registries after a document with the expected content.
func (c *comparison) moment(st *step) {
	before := c.worlds
	c.worlds = map[string]*world{}
	right := rightState{
		endpoints: map[indexKey]map[string]modelEndpoint{}, services: map[string]map[string]record{},
		gateways: set{}, workloads: map[string]map[string]record{},
	}
	for _, cl := range c.sys.clusters {
		if cl.kube == nil {
			continue
		}
		w := c.world(cl)
		c.worlds[w.cluster] = w
		right.add(w)
		c.clusterIsRight(cl, right.services[w.cluster])
	}
	got := c.sys.viewIndex()
	c.indexIsRight(got, right)
	c.entriesAreRight(got)
	if g := textsOf(viewGateways(c.sys)); !maps.Equal(g, right.gateways) {
		c.report("gateways: got %v, want %v", g.sorted(), right.gateways.sorted())
	}
	c.past.learn(before, c.worlds, c.right, right, st)
	c.right = right
	calls := len(c.calls)
	c.collect()
	c.proxyUpdatesAreRight(st, before, c.calls[calls:])
}

func (r *rightState) add(w *world) {
	r.services[w.cluster] = map[string]record{}
	for _, s := range w.services {
		k := indexKey{w.hostname(s.Namespace, s.Name), s.Namespace, w.shard()}
		r.services[w.cluster][k.hostname] = w.service(s)
		r.endpoints[k] = map[string]modelEndpoint{}
		for _, e := range w.endpoints(s) {
			r.endpoints[k][e.key] = e
		}
	}
	for _, g := range w.gateways() {
		r.gateways[g.text()] = true
	}
	r.workloads[w.cluster] = w.workloads()
}

func viewGateways(sys *system) []record {
	var out []record
	for _, g := range sys.registry.NetworkGateways() {
		out = append(out, viewGateway(g))
	}
	return out
}

// clusterIsRight compares the services of one registry.
func (c *comparison) clusterIsRight(cl *cluster, want map[string]record) {
	got := map[string]record{}
	for _, s := range cl.kube.Services() {
		got[string(s.Hostname)] = viewService(s)
	}
	for _, host := range hostsOf(got, want) {
		if got[host].text() != want[host].text() {
			c.report("service %s of %s:\n got  %s\n want %s", host, cl.id, got[host].text(), want[host].text())
		}
	}
}

func hostsOf[V any](all ...map[string]V) []string {
	s := set{}
	for _, m := range all {
		for k := range m {
			s[k] = true
		}
	}
	return s.sorted()
}

// indexIsRight compares the endpoints of Kubernetes registries.
func (c *comparison) indexIsRight(got indexState, right rightState) {
	keys := map[indexKey]bool{}
	for k := range got {
		keys[k] = true
	}
	for k := range right.endpoints {
		keys[k] = true
	}
	for k := range keys {
		if !strings.HasPrefix(k.shard, "Kubernetes/") {
			c.entriesAreConnected(k, got[k])
			continue
		}
		want := set{}
		for _, e := range right.endpoints[k] {
			want[e.record.text()] = true
		}
		if g := textsOf(got[k]); !maps.Equal(g, want) {
			c.report("endpoints of %s:\n got  %s\n want %s", k, strings.Join(g.sorted(), "\n      "), strings.Join(want.sorted(), "\n      "))
		}
	}
}

// entriesAreConnected requires that no endpoint of a disconnected cluster is left (row K26).
func (c *comparison) entriesAreConnected(k indexKey, got []record) {
	for _, r := range got {
		if id := r.str("clusterID"); c.worlds[id] == nil {
			c.report("endpoint of %s is of cluster %s, which is not connected: %s", k, id, r.text())
		}
	}
}

// collect takes the calls since the last document.
func (c *comparison) collect() {
	c.calls = append(c.calls, c.sys.recorder.take()...)
	c.services = append(c.services, c.sys.services...)
	c.workloads = append(c.workloads, c.sys.workloads...)
	c.gatewayCalls += c.sys.gatewayCalls
	c.sys.services, c.sys.workloads, c.sys.gatewayCalls = nil, nil, 0
}

// forget drops the effects of the documents before the first step.
func (c *comparison) forget() {
	for _, w := range c.workloads {
		c.notify(w)
	}
	c.next(nil)
}

// next ends a step.
func (c *comparison) next(recorded record) {
	c.gotBefore, c.gotGatewaysBefore = c.sys.viewIndex(), textsOf(viewGateways(c.sys))
	c.recordedBefore, c.gatewaysBefore = indexState{}, set{}
	c.accountsBefore = map[string]string{}
	if recorded != nil {
		c.recordedBefore, c.gatewaysBefore = recordedIndex(recorded), textsOf(recorded.list("networkGateways"))
		for _, e := range recorded.list("endpointIndex") {
			c.accountsBefore[e.str("namespace")+"/"+e.str("hostname")] = fmt.Sprint(e["serviceAccounts"])
		}
	}
	c.notifiedBefore = maps.Clone(c.notified)
	c.calls, c.services, c.workloads, c.gatewayCalls = nil, nil, nil, 0
}

// compare compares the effects of a step with the recording of the step.
func (c *comparison) compare(name string, recorded record) {
	n := len(c.differences)
	c.compareServices(recorded)
	c.compareIndex(recorded)
	c.compareProxies(recorded)
	c.compareGateways(recorded)
	c.compareServiceHandlers(recorded)
	c.compareWorkloadHandlers(recorded)
	c.comparePushes(recorded)
	c.compareConfigUpdates(recorded)
	c.compareProxyUpdates(recorded)
	c.compareRegistries(recorded)
	for i := n; i < len(c.differences); i++ {
		c.differences[i] = name + ": " + c.differences[i]
	}
	c.next(recorded)
}

func (c *comparison) compareRegistries(recorded record) {
	want := recorded.strings("registryOrder")
	var got []string
	for _, r := range c.sys.registry.Registries() {
		got = append(got, string(r.Provider())+"/"+string(r.Cluster()))
	}
	if len(want) > 0 && !slices.Equal(got, want) {
		c.report("registries: got %v, want %v", got, want)
	}
	for _, call := range recorded.list("calls") {
		if call.str("call") == callRemoveShard && !slices.ContainsFunc(c.calls, func(k call_) bool {
			return k.name == callRemoveShard && k.shard.String() == call.str("shard")
		}) {
			c.report("RemoveShard %s is missing", call.str("shard"))
		}
	}
}

type call_ = call

// same reports whether two objects are the same.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }
