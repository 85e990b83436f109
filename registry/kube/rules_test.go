// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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

// withoutNetwork returns the text of an endpoint but for its network (rows K39, K40, K61).
func withoutNetwork(r record) string {
	own := map[string]any{}
	if given, ok := r["labels"].(map[string]any); ok {
		own = maps.Clone(given)
		delete(own, "topology.istio.io/network")
	}
	return "without network: " + r.with("network", nil).with("labels", own).text()
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
		once := p.endpoints[k][key]
		if !once[r.text()] && !once[withoutNetwork(r)] && !contested && !p.together && !p.freeNetwork {
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

// staleService: the recording may have an earlier state of the fields that a Kubernetes service gets
// from its namespace or the mesh (rows K12, K44).
func (p *past) staleService(got, recorded record) bool {
	if got.str("registry") != "Kubernetes" {
		return false
	}
	for _, field := range []string{"serviceAccounts", "trafficDistribution"} {
		got, recorded = got.with(field, nil), recorded.with(field, nil)
	}
	return got.text() == recorded.text()
}

// serviceRows removes the fields that are recorded differently according to rows: addresses of node
// port services (row K37) and of other clusters (row K29), empty items of exportTo (row K45).
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

// gateway: a gateway that was right once may stay (rows K31 to K33, K28), and the next
// event of a node gives any that was one of a node port the addresses of nodes, with
// the port that its service has then (rows K33, K34).
func (p *past) gateway(text string) bool {
	if p.gateways[text] || strings.Contains(text, `"port":15443`) {
		return true
	}
	for a := range p.nodeAddresses {
		if strings.Contains(text, `"`+a+`"`) {
			return true
		}
	}
	return false
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

// workload: the recording lacks notifications of handlers about a pod when a node, the mesh or a
// namespace changes, or when the pod becomes unready (rows K10, K11, K12, K16, K42). Another
// comparison checks that handlers have the expected state. Here the recording must be a state that
// was right at some time.
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
