// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// past is what is known of former moments: what the recording may still show.
//
// The rows of DECISIONS.md have one cause in common: the recorded registry looks at
// the endpoints of a slice when the slice changes, and at few other times. So what
// another object's change does to an endpoint may be missing from the recording until
// the slice changes (rows K1, K3, K6 to K13, K16, K19, K20, K54, K58, K61). Such an
// endpoint is tainted; what is recorded of it must then be something that was right
// once. An endpoint that is not tainted must be as recorded.
type past struct {
	tainted map[indexKey]map[string]bool
	// endpoints has the texts of what was right once, by host and key.
	endpoints map[indexKey]map[string]set
	services  map[string]set
	gateways  set
	workloads map[string]set
	// namespaces that were deleted while selectors were set (rows K42, K43).
	deleted  set
	selector bool
	// changedInStep and changedByOthers are services ("cluster host") that changed in
	// the step, and those that changed because of another object.
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
}

func newPast() past {
	return past{
		tainted: map[indexKey]map[string]bool{}, endpoints: map[indexKey]map[string]set{}, services: map[string]set{},
		gateways: set{}, workloads: map[string]set{}, deleted: set{}, changedInStep: set{}, changedByOthers: set{},
		accounts: set{}, podNames: set{}, podAddresses: set{}, networks: set{},
		entryAddresses: set{},
	}
}

// learn notes what a moment changed.
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
	p.accounts[k.namespace+"/"+k.hostname] = true
}

// inStep: the recording has caught up with an endpoint.
func (p *past) inStep(k indexKey, key string) { delete(p.tainted[k], key) }

func (p *past) learnEndpoints(k indexKey, was, is map[string]modelEndpoint, changedSlices set) {
	if p.endpoints[k] == nil {
		p.endpoints[k] = map[string]set{}
	}
	for _, key := range hostsOf(was, is) {
		old, curr := was[key], is[key]
		plainKey := endpointKey(curr.record)
		if curr.record == nil {
			plainKey = endpointKey(old.record)
		}
		if curr.record != nil {
			if p.endpoints[k][plainKey] == nil {
				p.endpoints[k][plainKey] = set{}
			}
			for _, text := range variants(curr) {
				p.endpoints[k][plainKey][text] = true
			}
		}
		if old.record.text() == curr.record.text() {
			continue
		}
		cluster := strings.TrimPrefix(k.shard, "Kubernetes/")
		looked := curr.slice != "" && changedSlices[cluster+" "+curr.slice] || curr.record == nil && changedSlices[cluster+" "+old.slice]
		if !looked || p.together {
			p.taint(k, plainKey)
		}
	}
}

// variants returns the texts that a recording may have of an endpoint that is
// right. The health of one that is not ready depends on when its service was seen
// (row K3), and on conditions that are not given (row K4).
func variants(e modelEndpoint) []string {
	r := networkRow(e.record)
	out := []string{r.text()}
	if e.shaky {
		for _, h := range []string{"UnHealthy", "Terminating", "Draining"} {
			out = append(out, r.with("healthStatus", h).text())
		}
	}
	return out
}

// explains returns why a difference is not one of a row; "" if it is.
func (p *past) explains(k indexKey, key string, recorded []record, right []modelEndpoint) string {
	contested := slices.ContainsFunc(right, func(e modelEndpoint) bool { return e.claims > 1 })
	shaky := slices.ContainsFunc(right, func(e modelEndpoint) bool { return e.shaky })
	loose := p.tainted[k][key] || contested || p.freeNetwork
	if !loose && !shaky {
		return "it was looked at since it changed"
	}
	if len(recorded) == 0 && !loose {
		return "it is missing"
	}
	for _, r := range recorded {
		if !p.endpoints[k][key][r.text()] && !contested && !p.together && !p.freeNetwork {
			return "it never was like that"
		}
	}
	return ""
}

// severalAddresses: the endpoint of a pod with several addresses is recorded as that
// of one slice, without the others (row K54); one without a target has the identity
// only of a pod whose first address it has (row K15).
func (c *comparison) severalAddresses(right map[string]modelEndpoint, recorded []record, wanted []modelEndpoint) bool {
	for _, e := range wanted {
		if len(e.record.strings("addresses")) > 1 || e.second {
			return true
		}
	}
	for _, r := range recorded {
		for _, e := range right {
			if all := e.record.strings("addresses"); len(all) > 1 && slices.Contains(all, r.strings("addresses")[0]) {
				return true
			}
		}
	}
	return false
}

// repeatedPorts: of several ports of one number the recording has the first only,
// for workloads (row K21).
func (c *comparison) repeatedPorts(k indexKey, wanted []modelEndpoint) bool {
	foreign := slices.ContainsFunc(wanted, func(e modelEndpoint) bool { return e.slice == "" })
	for _, w := range c.worlds {
		for _, s := range w.services {
			if w.shard() != k.shard || w.hostname(s.Namespace, s.Name) != k.hostname {
				continue
			}
			seen := map[int32]bool{}
			for _, p := range s.Spec.Ports {
				if seen[p.Port] && (foreign || len(wanted) == 0) {
					return true
				}
				seen[p.Port] = true
			}
		}
	}
	return false
}

// unwatched: the services of a namespace that was deleted or deselected while
// selectors were set may stay (rows K42, K43).
func (p *past) unwatched(got, recorded record) bool {
	r := got
	if r == nil {
		r = recorded
	}
	return p.selector && p.deleted[r.str("namespace")]
}

func (p *past) unwatchedHost(host string) bool {
	parts := strings.Split(host, ".")
	return p.selector && len(parts) > 1 && p.deleted[parts[1]]
}

// staleService: what a service has from its namespace or the mesh (rows K12, K44)
// the recording may have as it was.
func (p *past) staleService(got, recorded record) bool {
	for _, field := range []string{"serviceAccounts", "trafficDistribution"} {
		got, recorded = got.with(field, nil), recorded.with(field, nil)
	}
	return got.text() == recorded.text()
}

// serviceRows removes what rows say is recorded otherwise: addresses of node port
// services (row K37) and of other clusters (row K29), empty items of exportTo (row
// K45).
func (c *comparison) serviceRows(r record) record {
	if r == nil {
		return nil
	}
	if ports, ok := r["clusterExternalPorts"]; ok && ports != nil {
		r = r.with("clusterExternalAddresses", nil)
	}
	if external, ok := r["clusterExternalAddresses"].(map[string]any); ok && len(c.sys.clusters) > 1 {
		first := map[string]any{}
		for _, cl := range c.sys.clusters {
			if v, ok := external[string(cl.id)]; ok && cl == c.sys.clusters[0] {
				first[string(cl.id)] = v
			}
		}
		r = r.with("clusterExternalAddresses", any(first))
	}
	exports := slices.DeleteFunc(r.strings("exportTo"), func(v string) bool { return v == "" })
	r = r.with("exportTo", any(exports))
	return plain(map[string]any(r)).(map[string]any)
}

// entryRows: the network of an endpoint is in its field and in its label (row 11).
func (c *comparison) entryRows(all []record) []record {
	var out []record
	for _, r := range all {
		out = append(out, c.entryRow(r))
	}
	return out
}

func (c *comparison) entryRow(r record) record {
	if e, ok := r["endpoint"].(map[string]any); ok {
		return r.with("endpoint", map[string]any(c.entryRow(e)))
	}
	if e, ok := r["endpoint"].(record); ok {
		return r.with("endpoint", map[string]any(c.entryRow(e)))
	}
	return networkRow(r)
}

func networkRow(r record) record {
	own, _ := r["labels"].(map[string]any)
	network := fmt.Sprint(own["topology.istio.io/network"])
	if own["topology.istio.io/network"] != nil {
		return r.with("network", network)
	}
	return r.with("network", nil)
}

// staleEntries: endpoints of a ServiceEntry that are of pods follow the pods; in
// the recording they may stay (rows K10, K11, K16, K26, K27 and 2).
func (p *past) staleEntries(_ indexKey, c *comparison, got, recorded []record) bool {
	g, w := textsOf(got), textsOf(recorded)
	for _, list := range [][]record{got, recorded} {
		for _, r := range list {
			if g[r.text()] && w[r.text()] {
				continue
			}
			a := r.strings("addresses")
			if len(a) == 0 || !p.podAddresses[a[0]] && (!p.entryAddresses[a[0]] || len(c.sys.clusters) == 1) {
				return false
			}
		}
	}
	return true
}

// gateway: a gateway that was right once may stay (rows K31 to K33, K28).
func (p *past) gateway(text string) bool {
	return p.gateways[text] || strings.Contains(text, `"port":15443`)
}

// nodePortGateway: gateways of node port services come and go with node events only
// (row K34).
func (c *comparison) nodePortGateway(text string) bool {
	for _, w := range c.worlds {
		for _, n := range w.nodes {
			if a := externalAddress(n); a != "" && strings.Contains(text, `"`+a+`"`) {
				return true
			}
		}
		for _, s := range w.services {
			// One that was a node port service keeps the addresses of nodes (row K33).
			k := w.cluster + " " + w.hostname(s.Namespace, s.Name)
			for former := range c.past.services[k] {
				if strings.Contains(former, "clusterExternalPorts") && slices.ContainsFunc(w.external(s), func(a string) bool {
					return strings.Contains(text, `"`+a+`"`)
				}) {
					return true
				}
			}
		}
	}
	return false
}

// replaced: a registry came, went or was replaced in the step.
func (c *comparison) replaced(cluster string) bool {
	for _, k := range c.calls {
		if k.name == callConfigUpdate && k.request.Forced && k.request.Reason["cluster"] > 0 {
			return true
		}
	}
	return false
}

// workload: what handlers were told of a pod by the change of a node, of the mesh or
// of a namespace, or when it became unready, is not recorded (rows K10, K11, K12,
// K16, K42). That they know what is right is compared elsewhere, with what should be;
// the recording must be of something that was right once.
func (p *past) workload(k string, recorded record) bool {
	return strings.HasPrefix(k, "Kubernetes/") && (recorded == nil || p.workloads[k][recorded.text()] || p.freeNetwork)
}

func (p *past) pushes(k string) bool { return p.accounts[k] || p.selector && len(p.deleted) > 0 }

// proxyUpdate: an address of a pod that a ServiceEntry may select follows the pod
// (rows K10, K11, K16, K25, K27), that of a WorkloadEntry follows its address (row
// 3); after a change of labels while the pod is not ready the update comes when it
// becomes ready (row K9).
func (p *past) proxyUpdate(k string, c *comparison) bool {
	_, ip, _ := strings.Cut(k, " ")
	return c.sys.entries != nil && (p.podAddresses[ip] || p.entryAddresses[ip])
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
}
