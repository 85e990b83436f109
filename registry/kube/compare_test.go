// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// comparison is one replay with what is known of it. Everything that the library
// shows is compared twice: after every document with a computation from the objects
// that exist (world), and after every step with the recording, as far as no row of
// DECISIONS.md says that the recording depends on the past. The rows are the
// functions of rules_test.go.
type comparison struct {
	sys         *system
	differences []string

	// worlds are those of the connected clusters, as of the last moment.
	worlds map[string]*world
	// foreign are the workloads that each cluster was given.
	right rightState
	// past is what the rows know of former moments.
	past past

	gotBefore, recordedBefore indexState
	accountsBefore            map[string]string
	gatewaysBefore            set
	gotGatewaysBefore         set
	toldBefore                map[string]record
	told                      map[string]record
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
		sys: sys, worlds: map[string]*world{}, past: newPast(), told: map[string]record{}, toldBefore: map[string]record{},
		gotBefore: indexState{}, recordedBefore: indexState{}, accountsBefore: map[string]string{},
	}
}

func (c *comparison) report(format string, args ...any) {
	c.differences = append(c.differences, fmt.Sprintf(format, args...))
}

// kubeOptions are those of a cluster's registry.
func (sys *system) kubeOptions(cl *cluster) kube.Options {
	o := sys.scenario.Options
	return kube.Options{
		ClusterID: cl.id, DomainSuffix: o.DomainSuffix, SystemNamespace: o.SystemNamespace, DualStack: o.Features.DualStack,
	}
}

// world returns what a cluster's registry should be a function of.
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
		// Its handlers have been told of these; that they are right is the concern of
		// that registry's own tests.
		cancel := from.SubscribeWorkloads(func(wi *registry.WorkloadInstance, _ registry.Event) { w.foreign[wi.Key()] = wi })
		cancel()
	}
	return w
}

// moment compares what the registries show after a document with what they should.
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
	if g := textsOf(viewGateways(c.sys)); !maps.Equal(g, right.gateways) {
		c.report("gateways: got %v, want %v", g.sorted(), right.gateways.sorted())
	}
	c.past.learn(before, c.worlds, c.right, right, st)
	c.right = right
	c.collect()
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

// entriesAreConnected: nothing is left of a cluster that is not connected (row K26).
func (c *comparison) entriesAreConnected(k indexKey, got []record) {
	for _, r := range got {
		if id := r.str("clusterID"); c.worlds[id] == nil {
			c.report("endpoint of %s is of cluster %s, which is not connected: %s", k, id, r.text())
		}
	}
}

// collect takes the calls since the last moment.
func (c *comparison) collect() {
	c.calls = append(c.calls, c.sys.recorder.take()...)
	c.services = append(c.services, c.sys.services...)
	c.workloads = append(c.workloads, c.sys.workloads...)
	c.gatewayCalls += c.sys.gatewayCalls
	c.sys.services, c.sys.workloads, c.sys.gatewayCalls = nil, nil, 0
}

// forget drops what was set off before the first step.
func (c *comparison) forget() {
	for _, w := range c.workloads {
		c.tell(w)
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
	c.toldBefore = maps.Clone(c.told)
	c.calls, c.services, c.workloads, c.gatewayCalls = nil, nil, nil, 0
}

func (c *comparison) tell(w workloadCall) {
	if w.workload == nil {
		maps.DeleteFunc(c.told, func(k string, _ record) bool { return strings.HasPrefix(k, w.registry+" ") })
		return
	}
	k := w.registry + " " + w.workload.Kind.String() + " " + w.workload.Namespace + "/" + w.workload.Name
	if w.event == registry.EventDelete {
		delete(c.told, k)
		return
	}
	c.told[k] = viewWorkload(w.workload)
}

func viewWorkload(w *registry.WorkloadInstance) record {
	return plain(map[string]any{"portMap": w.PortMap, "endpoint": viewEndpoint(w.Endpoint)}).(map[string]any)
}

// compare compares what a step did with its recording.
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

// compareServices compares services and lookups.
func (c *comparison) compareServices(recorded record) {
	got := map[string]record{}
	for _, s := range c.sys.registry.Services() {
		r := viewService(s)
		got[serviceKey(r)] = r
	}
	c.compareServiceLists("the aggregate", got, recorded.list("services"))
	for _, cs := range recorded.list("clusterServices") {
		for _, cl := range c.sys.clusters {
			if string(cl.id) != cs.str("cluster") || cl.kube == nil {
				continue
			}
			own := map[string]record{}
			for _, s := range cl.kube.Services() {
				r := viewService(s)
				own[serviceKey(r)] = r
			}
			c.compareServiceLists(string(cl.id), own, cs.list("services"))
		}
	}
	answers, _ := recorded["getService"].(map[string]any)
	for host, want := range answers {
		c.compareLookup(host, want)
	}
}

func serviceKey(r record) string {
	return r.str("registry") + ":" + r.str("namespace") + "/" + r.str("objectName") + "/" + r.str("hostname") + "/" + r.str("defaultAddress")
}

func (c *comparison) compareServiceLists(of string, got map[string]record, recorded []record) {
	want := map[string]record{}
	for _, r := range recorded {
		want[serviceKey(r)] = r
	}
	for _, k := range hostsOf(got, want) {
		g, w := c.serviceRows(got[k]), c.serviceRows(want[k])
		switch {
		case g.text() == w.text(), c.past.unwatched(g, w):
		case g != nil && w != nil && c.past.staleService(g, w):
		default:
			c.report("service of %s:\n got      %s\n recorded %s", of, g.text(), w.text())
		}
	}
}

func (c *comparison) compareLookup(host string, want any) {
	got := ""
	if s := c.sys.registry.GetService(registry.Hostname(host)); s != nil {
		got = serviceKey(viewService(s))
	}
	if text, ok := want.(string); ok && text != got && !c.past.unwatchedHost(host) && !strings.HasPrefix(got, "Kubernetes:") {
		c.report("lookup of %s: got %q, recorded %q", host, got, text)
	}
}

// compareIndex compares the endpoint index.
func (c *comparison) compareIndex(recorded record) {
	got, want := c.sys.viewIndex(), recordedIndex(recorded)
	keys := map[indexKey]bool{}
	for k := range got {
		keys[k] = true
	}
	for k := range want {
		keys[k] = true
	}
	for k := range keys {
		if strings.HasPrefix(k.shard, "Kubernetes/") {
			c.compareShard(k, want[k])
		} else {
			c.compareEntries(k, got[k], want[k])
		}
	}
}

// compareShard compares the endpoints of a service in the shard of a Kubernetes
// registry. Those that were right were compared already.
func (c *comparison) compareShard(k indexKey, recorded []record) {
	right, isService := c.right.endpoints[k]
	if !isService || c.hidden(k) {
		return // rows K17, K18
	}
	byKey := map[string][]record{}
	for _, r := range recorded {
		byKey[endpointKey(r)] = append(byKey[endpointKey(r)], c.entryRow(r))
	}
	wanted := map[string][]modelEndpoint{}
	for _, e := range right {
		wanted[endpointKey(e.record)] = append(wanted[endpointKey(e.record)], e)
	}
	for _, key := range hostsOf2(byKey, wanted) {
		want := set{}
		for _, e := range wanted[key] {
			want[c.entryRow(e.record).text()] = true
		}
		if maps.Equal(textsOf(byKey[key]), want) {
			c.past.inStep(k, key)
			continue
		}
		if c.severalAddresses(right, byKey[key], wanted[key]) || c.repeatedPorts(k, wanted[key]) {
			continue
		}
		if why := c.past.explains(k, key, byKey[key], wanted[key]); why != "" {
			c.report("endpoint %s of %s (%s):\n got      %s\n recorded %s", key, k, why,
				strings.Join(want.sorted(), "\n          "), strings.Join(textsOf(byKey[key]).sorted(), "\n          "))
		}
	}
}

func hostsOf2[V, W any](a map[string]V, b map[string]W) []string {
	s := set{}
	for k := range a {
		s[k] = true
	}
	for k := range b {
		s[k] = true
	}
	return s.sorted()
}

func (c *comparison) hidden(k indexKey) bool {
	for _, w := range c.worlds {
		for _, s := range w.services {
			if w.shard() == k.shard && w.hostname(s.Namespace, s.Name) == k.hostname {
				return isHidden(s)
			}
		}
	}
	return false
}

// compareEntries compares the endpoints of a ServiceEntry.
func (c *comparison) compareEntries(k indexKey, got, recorded []record) {
	g, w := textsOf(c.entryRows(got)), textsOf(c.entryRows(recorded))
	if maps.Equal(g, w) || c.past.staleEntries(k, c, got, recorded) {
		return
	}
	c.report("endpoints of %s:\n got      %s\n recorded %s", k, strings.Join(g.sorted(), "\n          "), strings.Join(w.sorted(), "\n          "))
}

// compareGateways compares the gateways of the aggregate.
func (c *comparison) compareGateways(recorded record) {
	got, want := textsOf(viewGateways(c.sys)), textsOf(recorded.list("networkGateways"))
	for g := range want {
		if !got[g] && !c.past.gateway(g) {
			c.report("gateway %s is recorded", g)
		}
	}
	for g := range got {
		if !want[g] && !c.nodePortGateway(g) {
			c.report("gateway %s is not recorded", g)
		}
	}
	if !maps.Equal(got, c.gotGatewaysBefore) && c.gatewayCalls == 0 && len(got)+len(c.gotGatewaysBefore) > 0 {
		c.report("gateway handlers were not called")
	}
}

// compareServiceHandlers compares of which services handlers were told.
func (c *comparison) compareServiceHandlers(recorded record) {
	want, got := map[string]string{}, map[string]string{}
	for _, r := range recorded.list("serviceHandlerCalls") {
		want[r.str("cluster")+" "+r.str("hostname")] = r.str("event")
	}
	for _, s := range c.services {
		got[string(s.cluster)+" "+string(s.hostname)] = s.event.String()
	}
	for _, k := range hostsOf(got, want) {
		cluster, host, _ := strings.Cut(k, " ")
		switch g, w := got[k], want[k]; {
		case (g == "delete") == (w == "delete") && (g == "") == (w == ""):
		case g == "" && w != "delete" && !c.past.changedInStep[k]: // nothing changed
		case g == "" && c.replaced(cluster): // the handler of a new registry starts complete
		case w == "" && c.past.changedByOthers[k]:
		case w == "" && recordedForced(recorded): // row K35: what is pushed to everybody needs no more
		case w == "" && g != "" && c.replaced(cluster):
		case c.past.unwatchedHost(host):
		default:
			c.report("service handlers of %s: got %q, recorded %q", k, g, w)
		}
	}
}

func recordedForced(recorded record) bool {
	return slices.ContainsFunc(recorded.list("calls"), func(r record) bool { return r["forced"] == true })
}

// compareWorkloadHandlers compares the last that handlers were told of each
// workload.
func (c *comparison) compareWorkloadHandlers(recorded record) {
	want := map[string]record{}
	for _, r := range recorded.list("workloadHandlerCalls") {
		k := r.str("registry") + " " + r.str("kind") + " " + r.str("namespace") + "/" + r.str("name")
		want[k] = plain(map[string]any{"portMap": r["portMap"], "endpoint": r["endpoint"]}).(map[string]any)
		if r.str("event") == "delete" {
			want[k] = nil
		}
	}
	for _, w := range c.workloads {
		c.tell(w)
	}
	for k, w := range want {
		got, has := c.told[k]
		switch {
		case w == nil && !has, w != nil && has && c.entryRow(w).text() == c.entryRow(got).text():
		case w != nil && got.text() == c.toldBefore[k].text() && w.text() == got.text():
		case c.past.workload(k, w):
		default:
			c.report("workload handlers of %s:\n got      %s\n recorded %s", k, got.text(), w.text())
		}
	}
	for _, w := range c.workloads {
		if w.workload == nil {
			continue
		}
		k := w.registry + " " + w.workload.Kind.String() + " " + w.workload.Namespace + "/" + w.workload.Name
		if _, recordedToo := want[k]; !recordedToo && !c.past.workload(k, nil) && c.told[k].text() != c.toldBefore[k].text() {
			c.report("workload handlers of %s: got %s %s, recorded nothing", k, w.event, c.told[k].text())
		}
	}
	c.compareToldPods()
}

// compareToldPods compares what workload handlers know of pods with what they
// should.
func (c *comparison) compareToldPods() {
	for cluster, all := range c.right.workloads {
		prefix := "Kubernetes/" + cluster + " Pod "
		for k, want := range all {
			if got := c.told[prefix+k]; got.text() != want.text() {
				c.report("workload handlers know of %s%s:\n got  %s\n want %s", prefix, k, got.text(), want.text())
			}
		}
		for k := range c.told {
			if name, ok := strings.CutPrefix(k, prefix); ok && all[name] == nil {
				c.report("workload handlers still know of %s", k)
			}
		}
	}
}

// comparePushes compares with what services were pushed whose endpoints changed, if
// they changed in the same way.
func (c *comparison) comparePushes(recorded record) {
	got, want := map[string]xdsupdate.PushType{}, map[string]xdsupdate.PushType{}
	for _, k := range c.calls {
		if k.name == callEDSUpdate {
			name := k.namespace + "/" + string(k.hostname)
			got[name] = max(got[name], k.push)
		}
	}
	uncertain := set{}
	for _, r := range recorded.list("calls") {
		if name := r.str("call"); name == "EDSUpdate" || name == "EDSCacheUpdate" {
			k := r.str("namespace") + "/" + r.str("hostname")
			want[k] = max(want[k], pushType(r.str("pushType")))
			if r["sometimes"] == true {
				uncertain[k] = true
			}
		}
	}
	after := recordedIndex(recorded)
	for k := range want {
		if got[k] == want[k] || uncertain[k] || !sameHost(k, c.gotBefore, c.recordedBefore) || !sameHost(k, c.sys.viewIndex(), after) {
			continue
		}
		if sameHost(k, c.gotBefore, c.sys.viewIndex()) || c.removedShard() || c.past.pushes(k) {
			continue // nothing changed, or its history of accounts is another one
		}
		c.report("push of %s: got %s, recorded %s", k, got[k], want[k])
	}
	for _, k := range c.calls {
		if k.name == callEDSUpdate && k.push == xdsupdate.NoPush && len(c.sys.clusters) == 1 && !c.pushedMore(k) {
			c.report("an EDSUpdate of %s/%s changes nothing", k.namespace, k.hostname)
		}
	}
}

// pushedMore: an update that hides behind another one of the same step.
func (c *comparison) pushedMore(k call) bool {
	return slices.ContainsFunc(c.calls, func(l call) bool { return l.name == callSvcUpdate && l.hostname == k.hostname }) ||
		strings.HasPrefix(k.shard.String(), "External/")
}

func (c *comparison) removedShard() bool {
	return slices.ContainsFunc(c.calls, func(k call) bool { return k.name == callRemoveShard })
}

func pushType(s string) xdsupdate.PushType {
	for _, p := range []xdsupdate.PushType{xdsupdate.NoPush, xdsupdate.IncrementalPush, xdsupdate.FullPush} {
		if p.String() == s {
			return p
		}
	}
	return xdsupdate.NoPush
}

// sameHost reports whether all shards of a service are the same in two states.
func sameHost(k string, a, b indexState) bool {
	for _, pair := range [][2]indexState{{a, b}, {b, a}} {
		for i, list := range pair[0] {
			if i.namespace+"/"+i.hostname == k && !maps.Equal(textsOf(list), textsOf(pair[1][i])) {
				return false
			}
		}
	}
	return true
}

// compareConfigUpdates checks what was asked to be pushed.
func (c *comparison) compareConfigUpdates(recorded record) {
	services, headless, forced := set{}, set{}, set{}
	for _, k := range c.calls {
		if k.name != callConfigUpdate {
			continue
		}
		for reason := range k.request.Reason {
			switch {
			case k.request.Forced:
				forced[string(reason)] = true
			case reason == kube.ReasonHeadlessEndpoint:
				for _, key := range k.request.Keys() {
					headless[key.String()] = true
				}
			case reason == xdsupdate.ReasonService:
				for _, key := range k.request.Keys() {
					services[key.Name] = true
				}
			}
		}
	}
	for _, s := range c.services {
		if !services[string(s.hostname)] && !c.replaced(string(s.cluster)) && !c.removedShard() {
			c.report("no ConfigUpdate of %s", s.hostname)
		}
	}
	c.compareHeadless(recorded, headless)
	if !maps.Equal(c.gotGatewaysBefore, textsOf(viewGateways(c.sys))) && len(forced) == 0 {
		c.report("gateways changed without a forced push")
	}
	for _, r := range recorded.list("calls") {
		if r["forced"] != true {
			continue
		}
		reason := r.strings("reasons")[0]
		changed := !maps.Equal(c.gatewaysBefore, textsOf(recorded.list("networkGateways"))) &&
			maps.Equal(c.gotGatewaysBefore, c.gatewaysBefore) && maps.Equal(textsOf(viewGateways(c.sys)), textsOf(recorded.list("networkGateways")))
		if (reason == "cluster" || changed && len(c.sys.clusters) == 1) && !forced[reason] &&
			(recorded["index"] != json.Number("-1") || len(forced) == 0) {
			c.report("no forced ConfigUpdate with reason %s: got %v", reason, forced.sorted())
		}
	}
}

// compareHeadless: a headless service whose endpoints changed is pushed, no other
// (row K53).
func (c *comparison) compareHeadless(recorded record, got set) {
	want := set{}
	after := c.sys.viewIndex()
	for cluster, w := range c.worlds {
		for _, s := range w.services {
			if resolution(s) != "Passthrough" || isHidden(s) {
				continue
			}
			k := indexKey{w.hostname(s.Namespace, s.Name), s.Namespace, "Kubernetes/" + cluster}
			if !maps.Equal(textsOf(c.gotBefore[k]), textsOf(after[k])) {
				want[headlessName(s, k)] = true
			}
		}
	}
	for k := range want {
		if !got[k] && !c.removedShard() {
			c.report("no ConfigUpdate of %s with reason headlessendpoint", k)
		}
	}
	for _, r := range recorded.list("calls") {
		for _, k := range r.strings("configsUpdated") {
			if slices.Contains(r.strings("reasons"), "headlessendpoint") && want[k] && !got[k] {
				c.report("no ConfigUpdate of %s with reason headlessendpoint, which is recorded", k)
			}
		}
	}
}

func headlessName(s *corev1.Service, k indexKey) string {
	kind := "DNSName"
	for _, p := range s.Spec.Ports {
		if !registry.Protocol(protocol(p)).IsHTTP() {
			kind = "ServiceEntry"
		}
	}
	return kind + "/" + k.namespace + "/" + k.hostname
}

// compareProxyUpdates compares which proxies were to be pushed.
func (c *comparison) compareProxyUpdates(recorded record) {
	want, got := set{}, set{}
	for _, r := range recorded.list("calls") {
		if r.str("call") == callProxyUpdate && r["sometimes"] != true && isIP(r.str("ip")) { // row 3
			want[r.str("cluster")+" "+r.str("ip")] = true
		}
	}
	for _, k := range c.calls {
		if k.name == callProxyUpdate {
			got[string(k.cluster)+" "+k.ip] = true
		}
	}
	for k := range want {
		if !got[k] && !c.past.proxyUpdate(k, c) {
			c.report("ProxyUpdate %s is missing", k)
		}
	}
	for k := range got {
		if !want[k] && !c.past.proxyUpdate(k, c) {
			c.report("ProxyUpdate %s is not recorded", k)
		}
	}
}

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// same reports whether two objects are the same.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }
