// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// The endpoints of ServiceEntries from pods are a function of the current entries and pods: a
// static entry has an endpoint for each usable pod of its namespace, in any connected cluster, that
// its selector matches. They are computed here, because the recording may have them late (rows K10,
// K11, K16, K25 to K27). Endpoints of WorkloadEntries are tested with the ServiceEntry registry.

// podFields returns the compared fields of an endpoint of a pod. The other fields belong to the
// port of the ServiceEntry.
func podFields(r record) string {
	return words(r, "addresses", "clusterID", "serviceAccount", "locality", "network", "nodeName", "workloadName", "tlsMode")
}

// podEntries returns the endpoints of pods that each host of a ServiceEntry should
// have.
func (c *comparison) podEntries() map[indexKey]set {
	out := map[indexKey]set{}
	first := c.sys.clusters[0]
	for _, d := range first.objects {
		if d.object != nil || d.Kind != "ServiceEntry" {
			continue
		}
		spec, ok := manifest.Parse(istio.Schemas(), d.text, manifest.Options{Lenient: true})[0].Config.Spec.(*networking.ServiceEntry)
		if !ok || spec.GetResolution() != networking.ServiceEntry_STATIC {
			continue
		}
		for _, host := range spec.GetHosts() {
			k := indexKey{host, d.Namespace, "External/" + string(first.id)}
			if out[k] == nil {
				out[k] = set{}
			}
			if s := spec.GetWorkloadSelector(); s != nil {
				maps.Copy(out[k], c.selectedPods(d.Namespace, s.GetLabels()))
			}
		}
	}
	return out
}

func (c *comparison) selectedPods(namespace string, selector map[string]string) set {
	out := set{}
	for _, w := range c.worlds {
		for key, r := range w.workloads() {
			p := w.pods[key]
			endpoint, _ := r["endpoint"].(map[string]any)
			if p.Namespace == namespace && matches(selector, endpoint["labels"]) {
				named := record(endpoint).with("workloadName", cmp.Or(record(endpoint).str("workloadName"), p.Name))
				out[podFields(named)] = true
			}
		}
	}
	return out
}

// matches reports whether labels of a record have all labels of a selector: none, if it is empty
// (row 12).
func matches(selector map[string]string, own any) bool {
	all, _ := own.(map[string]any)
	for k, v := range selector {
		if got, ok := all[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// entriesAreRight compares the endpoints of pods in the shards of ServiceEntries.
// Those at addresses that a WorkloadEntry has, too, are left out.
func (c *comparison) entriesAreRight(got indexState) {
	if c.sys.entries == nil {
		return
	}
	pods, entries := set{}, set{}
	for _, w := range c.worlds {
		for _, p := range w.allPods {
			for _, a := range podAddresses(p) {
				pods[a] = true
			}
		}
		for _, wi := range w.foreign {
			for _, a := range wi.Endpoint.Addresses {
				entries[a] = true
			}
		}
	}
	ofPod := func(text string) bool {
		address, _, _ := strings.Cut(text, " ")
		return pods[address] && !entries[address]
	}
	for k, want := range c.podEntries() {
		has := set{}
		for _, r := range got[k] {
			has[podFields(r)] = true
		}
		for _, text := range slices.Concat(has.sorted(), want.sorted()) {
			if ofPod(text) && has[text] != want[text] {
				c.report("endpoint of a pod of %s: shown %t, should be %t: %s", k, has[text], want[text], text)
			}
		}
	}
}
