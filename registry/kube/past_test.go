// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// past has the earlier states that the recording may still show. The rows of DECISIONS.md have one
// cause in common: the recorded registry reads the endpoints of a slice when the slice changes, and
// at few other times. Therefore the effect of another object's change on an endpoint may be missing
// from the recording until the slice changes (rows K1, K3, K6 to K13, K16, K19, K20, K54, K58,
// K61). Such an endpoint is tainted, and its recording must be a state that was right at some time.
// An endpoint that is not tainted must equal the recording.
type past struct {
	tainted map[indexKey]map[string]bool
	// looked are the endpoints whose slice has changed since they were tainted.
	looked map[indexKey]map[string]bool
	// endpoints has the texts of all states that were right at some time, by host and key.
	endpoints map[indexKey]map[string]set
	services  map[string]set
	gateways  set
	workloads map[string]set
	// namespaces that were deleted while selectors were set (rows K42, K43).
	deleted  set
	selector bool
	// changedInStep are the services ("cluster host") that changed in the step, changedByOthers
	// those that changed because of another object.
	changedInStep, changedByOthers set
	// accounts: hosts that were tainted once, whose accounts the index may remember.
	accounts set
	// pods that changed: their names and addresses.
	podNames, podAddresses set
	together               bool
	networks               set
	entryAddresses         set
	// ranges: mesh networks have had ranges. freeNetwork: the network of an address
	// may be recorded otherwise.
	ranges, freeNetwork bool
	// doubtful is set if freeNetwork was set at some time. Objects that were read then may be
	// recorded otherwise until they are read again.
	doubtful bool
	// nodeAddresses are the external addresses that nodes have had.
	nodeAddresses set
}

func newPast() past {
	return past{
		tainted: map[indexKey]map[string]bool{}, looked: map[indexKey]map[string]bool{}, endpoints: map[indexKey]map[string]set{}, services: map[string]set{},
		gateways: set{}, workloads: map[string]set{}, deleted: set{}, changedInStep: set{}, changedByOthers: set{},
		accounts: set{}, podNames: set{}, podAddresses: set{}, networks: set{},
		entryAddresses: set{}, nodeAddresses: set{},
	}
}

// learn records the changes of a document.
func (p *past) learn(before, after map[string]*world, was, is rightState, st *step) {
	p.together = p.together || st != nil && st.Together
	changedSlices := set{}
	for cluster, w := range after {
		p.learnNamespaces(before[cluster], w)
		p.learnNetworks(w)
		p.learnSlices(before[cluster], w, changedSlices)
		p.learnServices(cluster, before[cluster], w, was, is)
		p.learnPods(w)
	}
	for _, w := range after {
		p.learnLatent(w)
	}
	for k := range is.endpoints {
		p.learnEndpoints(k, was.endpoints[k], is.endpoints[k], changedSlices)
	}
	for g := range is.gateways {
		p.gateways[g] = true
	}
}

func (p *past) learnNamespaces(before, w *world) {
	p.selector = p.selector || len(w.mesh.DiscoverySelectors) > 0
	if before == nil {
		return
	}
	for name := range before.namespaces {
		if w.namespaces[name] == nil {
			p.deleted[name] = true
		}
	}
	for _, s := range w.allServices {
		if w.watched(s.Namespace) != before.watched(s.Namespace) {
			p.deleted[s.Namespace] = true
		}
	}
}

// learnSlices notes the slices that the recorded registry has just looked at. One
// that moved to another service leaves its endpoints (row K1).
func (p *past) learnSlices(before, w *world, changed set) {
	if before == nil {
		for name := range w.slices {
			changed[w.cluster+" "+name] = true
		}
		return
	}
	for name, s := range w.slices {
		if old := before.slices[name]; old == nil || !same(old, s) {
			changed[w.cluster+" "+name] = true
			if old != nil && !same(old.Labels, s.Labels) {
				for _, service := range w.services {
					k := indexKey{w.hostname(service.Namespace, service.Name), service.Namespace, w.shard()}
					for _, e := range before.sliceEndpoints(old, service) {
						p.taint(k, endpointKey(e.record))
					}
				}
			}
		}
	}
	for name := range before.slices {
		if w.slices[name] == nil {
			changed[w.cluster+" "+name] = true
		}
	}
}

func (p *past) learnServices(cluster string, before, w *world, was, is rightState) {
	for _, host := range hostsOf(was.services[cluster], is.services[cluster]) {
		old, curr := was.services[cluster][host], is.services[cluster][host]
		k := cluster + " " + host
		if curr != nil {
			if p.services[k] == nil {
				p.services[k] = set{}
			}
			p.services[k][curr.text()] = true
		}
		if old.text() == curr.text() {
			continue
		}
		p.changedInStep[k] = true
		name := curr.str("namespace") + "/" + curr.str("name")
		if before != nil && curr != nil && old != nil && same(before.services[name], w.services[name]) {
			p.changedByOthers[k] = true
		}
	}
}

func (p *past) learnPods(w *world) {
	for k, r := range w.workloads() {
		k = "Kubernetes/" + w.cluster + " Pod " + k
		if p.workloads[k] == nil {
			p.workloads[k] = set{}
		}
		p.workloads[k][r.text()] = true
	}
	for _, wi := range w.foreign {
		for _, a := range wi.Endpoint.Addresses {
			p.entryAddresses[a] = true
		}
	}
	for k, pod := range w.allPods {
		p.podNames[w.cluster+" "+k] = true
		for _, a := range podAddresses(pod) {
			p.podAddresses[a] = true
		}
	}
	for _, n := range w.mesh.Networks {
		p.networks[n.Name] = true
	}
}

func (p *past) taint(k indexKey, key string) {
	if p.tainted[k] == nil {
		p.tainted[k] = map[string]bool{}
	}
	p.tainted[k][key] = true
	delete(p.looked[k], key)
	p.accounts[k.namespace+"/"+k.hostname] = true
}

// look notes that the slice of an endpoint has changed since it was tainted.
func (p *past) look(k indexKey, key string) {
	if p.looked[k] == nil {
		p.looked[k] = map[string]bool{}
	}
	p.looked[k][key] = true
}

// inStep: the recording has the right endpoint. It has caught up with it if it has
// looked at the slice; otherwise it may only happen to be right, and show later what
// it saw before.
func (p *past) inStep(k indexKey, key string) {
	if p.looked[k][key] {
		delete(p.tainted[k], key)
	}
}

func (p *past) learnEndpoints(k indexKey, was, is map[string]modelEndpoint, changedSlices set) {
	for _, key := range hostsOf(was, is) {
		old, curr := was[key], is[key]
		plainKey := endpointKey(curr.record)
		if curr.record == nil {
			plainKey = endpointKey(old.record)
		}
		if curr.record != nil {
			p.wasRight(k, plainKey, curr)
		}
		cluster := strings.TrimPrefix(k.shard, "Kubernetes/")
		looked := curr.slice != "" && changedSlices[cluster+" "+curr.slice] || curr.record == nil && changedSlices[cluster+" "+old.slice]
		switch {
		case p.freeNetwork:
			p.taint(k, plainKey)
		case looked && !p.together:
			p.look(k, plainKey)
		case old.record.text() != curr.record.text():
			p.taint(k, plainKey)
		}
	}
}

// learnLatent records hidden endpoints. The recording has read them at some time, and may show that
// state when the service is created or becomes visible (rows K3, K8, K17, K18).
func (p *past) learnLatent(w *world) {
	for k, endpoints := range w.latent() {
		for _, e := range endpoints {
			key := endpointKey(e.record)
			p.wasRight(k, key, e)
			p.taint(k, key)
		}
	}
}

// wasRight records that the state of an endpoint is right at present.
func (p *past) wasRight(k indexKey, key string, e modelEndpoint) {
	if p.endpoints[k] == nil {
		p.endpoints[k] = map[string]set{}
	}
	if p.endpoints[k][key] == nil {
		p.endpoints[k][key] = set{}
	}
	for _, text := range variants(e) {
		p.endpoints[k][key][text] = true
	}
	if p.doubtful {
		p.endpoints[k][key][withoutNetwork(e.record)] = true
	}
}

// learnNetworks notes when the network of an address may be recorded otherwise: with
// several networks that claim an address or the cluster (row K39), with ranges that
// went (row K61), and after the system namespace went (row K40).
func (p *past) learnNetworks(w *world) {
	claims, prefixes := 0, []netip.Prefix{}
	for _, n := range w.mesh.Networks {
		if slices.Contains(n.Registries, registry.ClusterID(w.cluster)) {
			claims++
		}
		prefixes = append(prefixes, n.Ranges...)
	}
	overlap := false
	for i, a := range prefixes {
		for _, b := range prefixes[:i] {
			overlap = overlap || a.Overlaps(b)
		}
	}
	p.ranges = p.ranges || len(prefixes) > 0
	gone := p.deleted[w.system] && w.namespaces[w.system] == nil
	p.freeNetwork = claims > 1 || overlap || p.ranges && len(prefixes) == 0 || gone
	p.doubtful = p.doubtful || p.freeNetwork
	for _, n := range w.nodes {
		if a := externalAddress(n); a != "" {
			p.nodeAddresses[a] = true
		}
	}
}
