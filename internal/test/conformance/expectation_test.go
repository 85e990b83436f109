// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// expectation turns a recording, step by step, into the expected observations. It keeps the past
// state that the rules need.
type expectation struct {
	scenario *scenario
	// recorded and ours are the stores by registry, "" for the main one.
	recorded map[string]*storeModel
	ours     map[string]*storeModel
	// symbols are the versions of ours by their name in the golden file.
	symbols symbols
	// recordedNames and modelNames relate the versions of the golden file and of
	// the recorded model.
	recordedNames, modelNames naming
	// recordedCreated and created are the clocks of the two stores.
	recordedCreated, created creationClock
	// notified is what workload handlers know, by registry, namespace and name.
	notified map[string]workloadHandlerCall
	// members are the aggregate's registries by provider/cluster: their IDs, in order.
	members map[string][]string
	removed map[string]bool
	// index and services are those expected after the previous step.
	index     indexState
	services  []service
	diverged  bool
	staleKeys map[key]bool
	// collisions: see row2SameNames.
	collisions bool
	// pods are the addresses of the pods that other registries have.
	pods map[podName][]string
	// verbatim are the labels of workloads of other registries without a network, which are taken
	// unchanged.
	verbatim []map[string]string
}

// expected is the expected observation of a step. The embedded observation holds the parts that are
// compared directly; the fields of its calls are evaluated into the other fields.
type expected struct {
	observation
	rec observation

	// before is the recorded index before the step, gotBefore ours.
	before, gotBefore indexState
	// pushes without the calls that appeared in some runs only; all with them.
	pushes, all pushes
	// proxyAddresses are the lists of addresses that belong to one proxy each,
	// before or after the step.
	proxyAddresses [][]string
	// rightServices converts recorded services to the expected ones.
	rightServices func([]service) []service
	// normalise makes a set of a recorded endpoint list.
	normalise func([]endpoint) []endpoint
	// dns says of the services some of whose definitions make endpoints a part of
	// the cluster whether all do.
	dns map[key]bool
	// retimed are the services whose creation time changed (row 13): they may be
	// pushed, as another one may win now.
	retimed map[string]bool
	// addressOrder is the place of a service's address in its ServiceEntry, by
	// resource.
	addressOrder map[string]int
	// born is the order of creation of the ServiceEntries of services, by resource. It decides
	// between entries with a time from the store's clock.
	born map[string]int
	// proxyUpdates says of each "cluster ip" whether it must be there.
	proxyUpdates map[string]bool
	// proxyGroups are the sets of "cluster ip" with at least one expected member each.
	proxyGroups [][]string
	// problems are contradictions between the recording and the models.
	problems []string
	// storeOnly: nothing but the store can be compared; see why.
	storeOnly bool
	// free are services whose endpoints are not determined by the recording.
	free map[key]bool
	// members are the static registries of the aggregate.
	members []registrySpec
	// removedShards are the shards of registries that were removed from the aggregate.
	removedShards map[string]bool
	// collisions: the recorded endpoints are wrong; see row2SameNames.
	collisions bool
	// severalUpdaters: more than one registry tells the updater.
	severalUpdaters bool
	// resync: every EDSUpdate may be repeated.
	resync bool
	// membership: the step changes the aggregate's registries, which makes
	// services come and go.
	membership bool
}

func newExpectation(topic string, s *scenario) *expectation {
	x := &expectation{
		scenario: s, collisions: row2SameNames(topic, s.Name),
		recorded: map[string]*storeModel{}, ours: map[string]*storeModel{},
		symbols: symbols{}, notified: map[string]workloadHandlerCall{},
		members: map[string][]string{}, removed: map[string]bool{},
		index: indexState{}, staleKeys: map[key]bool{}, pods: map[podName][]string{},
	}
	for _, id := range append([]string{""}, workloadEntryRegistries(s)...) {
		x.recorded[id], x.ours[id] = newStoreModel(false), newStoreModel(true)
	}
	x.members[providerExternal+"/"+s.Options.ClusterID] = []string{""}
	for _, r := range s.Registries {
		if !r.Deferred {
			x.addMember(r)
		}
	}
	return x
}

// shard is the registry's provider/cluster.
func (r registrySpec) shard() string {
	if r.Type == typeWorkloadEntry {
		return providerExternal + "/" + r.Cluster
	}
	return r.Provider + "/" + r.Cluster
}

// workloadEntryRegistries returns the registries that have a store.
func workloadEntryRegistries(s *scenario) []string {
	var out []string
	for _, r := range s.Registries {
		if r.Type == typeWorkloadEntry {
			out = append(out, r.ID)
		}
	}
	return out
}

// initial returns the expected observation after the start.
func (x *expectation) initial(rec observation) *expected {
	e := x.step(step{Apply: &x.scenario.Initial}, rec)
	e.membership = true // the registries of the aggregate join
	return e
}

// step returns the expected observation after a step.
func (x *expectation) step(st step, rec observation) *expected {
	e := &expected{observation: rec, rec: rec, before: x.index, proxyUpdates: map[string]bool{}, free: map[key]bool{}}
	e.normalise, e.severalUpdaters = x.normaliseRecorded, len(x.recorded) > 1
	e.resync, e.collisions = st.ResyncEDS != nil, x.collisions
	wasDiverged := x.diverged
	e.proxyAddresses = slices.Collect(maps.Values(x.pods))
	x.play(e, st)
	x.diverged = !x.sameObjects()
	e.storeOnly = x.scenario.Options.StoreOnly || x.diverged || wasDiverged
	if e.storeOnly {
		x.index, x.services = stateOf(rec.EndpointIndex, x.normaliseRecorded), rec.Services
		return e
	}
	x.expectServices(e)
	x.expectIndex(e)
	x.expectProxyUpdates(e)
	x.row17Membership(e, st)
	x.index, x.services = e.all.after, e.Services
	return e
}

// play runs a step on the models.
func (x *expectation) play(e *expected, st step) {
	switch {
	case st.Apply != nil:
		x.apply(e, st.Registry, *st.Apply)
	case st.Delete != nil:
		k := st.Delete.key()
		theirs, ours := x.recorded[st.Registry].remove(k, ""), x.ours[st.Registry].remove(k, "")
		if len(e.Results) == 1 && e.Results[0].Outcome == theirs.outcome {
			e.Results = slices.Clone(e.Results)
			e.Results[0].Outcome = ours.outcome
		}
		x.expectEvents(e, st.Registry, []modelResult{theirs}, []modelResult{ours})
		x.notifyWorkloads(e, st.Registry, 0, nil)
	case st.Store != nil:
		x.store(e, *st.Store)
	case st.Workload != nil:
		x.workload(e, *st.Workload)
	}
	if st.Apply == nil && st.Delete == nil && st.Store == nil {
		for id := range x.recorded {
			x.notifyWorkloads(e, id, 0, nil)
		}
	}
}

func (x *expectation) sameObjects() bool {
	for id, m := range x.recorded {
		if !m.sameObjects(x.ours[id]) {
			return false
		}
	}
	return true
}

// apply creates or updates the documents, with creation times as README.md says.
func (x *expectation) apply(e *expected, registry, text string) {
	docs, err := documents(text)
	if err != nil {
		e.problems = append(e.problems, err.Error())
		return
	}
	var theirs, ours []modelResult
	for i, doc := range docs {
		refused := ""
		if i < len(e.rec.Results) && e.rec.Results[i].Outcome != outcomeOK {
			refused = e.rec.Results[i].Outcome
		}
		theirs = append(theirs, x.recorded[registry].apply(doc, refused, &x.recordedCreated))
		ours = append(ours, x.ours[registry].apply(doc, refused, &x.created))
		if i < len(e.Results) && theirs[i].op != ours[i].op {
			e.Results = slices.Clone(e.Results)
			e.Results[i].Op = ours[i].op
		}
		entry := accepted(doc, refused)
		if e.rec.Index < 0 {
			entry = nil // no handler is notified before the start
		}
		x.notifyWorkloads(e, registry, i, entry)
	}
	x.expectEvents(e, registry, theirs, ours)
}

// expectEvents replaces the recorded calls of event handlers by ours. Only the main
// store has handlers.
func (x *expectation) expectEvents(e *expected, registry string, theirs, ours []modelResult) {
	if registry != "" {
		return
	}
	e.EventHandlerCalls = nil
	var recorded []eventHandlerCall
	for i := range ours {
		recorded = append(recorded, x.events(theirs[i])...)
		e.EventHandlerCalls = append(e.EventHandlerCalls, x.events(ours[i])...)
	}
	if e.rec.Index < 0 && len(e.rec.EventHandlerCalls) == 0 {
		// Ours are notified of what exists when they are registered, theirs were not.
		recorded = nil
	}
	x.checkModel(e, e.rec.Results, recorded)
	x.symbols.bindEvents(e.rec.EventHandlerCalls, x.ourVersion)
}

// row13CreationTimes: the recorded registry ignored a changed creation time until another change.
// Ours applies it at once. Times of services are those of the stored objects; if they differ from
// the recorded ones, the recording does not determine an order that depends on them.
func (x *expectation) row13CreationTimes(services []service) []service {
	out := slices.Clone(services)
	for i, s := range out {
		if s.Registry != providerExternal {
			continue
		}
		if o, ok := x.ours[""].objects[s.object()]; ok {
			out[i].CreationTime = o.created
		}
	}
	return out
}

// rightServices applies the rules that change recorded services.
func (x *expectation) rightServices(services []service) []service {
	out := x.row13CreationTimes(services)
	if !enabled(x.scenario.Options.Features.IPAutoallocate, true) {
		for i, s := range out {
			out[i].AutoAllocatedIPv6 = row14PaddedIPv6(s.AutoAllocatedIPv4, s.AutoAllocatedIPv6)
		}
	}
	return out
}

// expectServices applies the rules that concern services and lookups.
func (x *expectation) expectServices(e *expected) {
	e.rightServices = x.rightServices
	e.Services = x.rightServices(e.rec.Services)
	before := map[string]string{}
	for _, s := range x.services {
		before[s.resource()] = s.CreationTime
	}
	e.addressOrder, e.born, e.retimed = map[string]int{}, map[string]int{}, map[string]bool{}
	stale := map[key]bool{}
	for i, s := range e.Services {
		if t, ok := before[s.resource()]; ok && t != s.CreationTime {
			e.retimed[serviceConfig(s.key())] = true
		}
		e.addressOrder[s.resource()] = slices.Index(x.specAddresses(s), s.DefaultAddress)
		e.born[s.resource()] = x.ours[""].objects[s.object()].born
		if s.CreationTime != e.rec.Services[i].CreationTime {
			stale[s.key()] = true
		}
		if s.Resolution == resolutionDNSRoundRobin && (stale[s.key()] || x.staleKeys[s.key()]) {
			e.free[s.key()] = true
		}
	}
	x.staleKeys = stale
	e.dns = map[key]bool{}
	for _, s := range append(slices.Clone(x.services), e.Services...) {
		if s.Resolution == resolutionDNS || s.Resolution == resolutionDNSRoundRobin {
			e.dns[s.key()] = true
		}
	}
	for _, s := range append(slices.Clone(x.services), e.Services...) {
		if _, some := e.dns[s.key()]; some && s.Resolution != resolutionDNS && s.Resolution != resolutionDNSRoundRobin {
			e.dns[s.key()] = false
		}
	}
}

// expectIndex evaluates the recorded calls.
func (x *expectation) expectIndex(e *expected) {
	e.pushes = pushesOf(e.before, e.rec.Calls, x.normaliseRecorded, false)
	e.all = pushesOf(e.before, e.rec.Calls, x.normaliseRecorded, true)
	// The recorded index is right where it differs from the calls, for example
	// if an answer was arbitrary.
	e.all.after = stateOf(e.rec.EndpointIndex, x.normaliseRecorded)
}

// object is the key of the service's ServiceEntry.
func (s service) object() configstore.ConfigKey {
	return configstore.ConfigKey{Kind: istio.ServiceEntry, Namespace: s.Namespace, Name: s.ObjectName}
}

// specAddresses returns the addresses of a ServiceEntry in declared order, as
// services show them.
func (x *expectation) specAddresses(s service) []string {
	spec, ok := x.ours[""].objects[s.object()].config.Spec.(*networking.ServiceEntry)
	if !ok {
		return nil
	}
	var out []string
	for _, a := range spec.GetAddresses() {
		if p, err := netip.ParsePrefix(a); err == nil && p.IsSingleIP() {
			a, _, _ = strings.Cut(a, "/")
		}
		out = append(out, a)
	}
	return out
}
