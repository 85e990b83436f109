// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

// checkExplanations: what Explain says is contributed is what the oracle says, in
// its order; and what is sent are the endpoints.
func (m *modelSystem) checkExplanations(after *outcome) {
	m.t.Helper()
	contributed := map[string][]string{}
	for _, c := range after.all {
		key := c.entry.Namespace + "/" + c.host
		contributed[key] = append(contributed[key], fmt.Sprintf("%s from %s: %s", c.entry.Name, c.name, describeEndpoint(&c.endpoint)))
	}
	for key := range after.services {
		namespace, hostname, _ := strings.Cut(key, "/")
		var explained []string
		sent := []string{}
		for _, e := range explain.Host(m.registry, namespace, registry.Hostname(hostname)).Entries {
			for _, p := range e.Endpoints {
				if strings.HasPrefix(p.Dropped, "DNS_ROUND_ROBIN") {
					continue
				}
				explained = append(explained, fmt.Sprintf("%s from %s: %s", e.Name, sourceName(e.Name, hostname, p.Source), describeEndpoint(p.Endpoint)))
				if p.Dropped == "" {
					sent = append(sent, describeEndpoint(p.Endpoint))
				}
			}
		}
		slices.Sort(sent)
		m.equal("Explain "+key, contributed[key], explained)
		m.equal("Explain "+key+", what is sent", after.endpoints[key], sent)
	}
	if !m.world.workloadEntriesOnly {
		m.checkSelections()
	}
}

// checkSelections: ExplainWorkload names the entries that select a workload, as
// the oracle says, and gives a reason for each of the others.
func (m *modelSystem) checkSelections() {
	m.t.Helper()
	for _, namespace := range modelNamespaces {
		for _, s := range m.world.candidates(namespace) {
			explained := explain.Workload(m.registry, s.key())
			if explained.Ignored != "" {
				m.t.Errorf("ExplainWorkload: %s is ignored: %s", s.name, explained.Ignored)
			}
			want, got := map[string]bool{}, map[string]bool{}
			for _, c := range m.world.entries {
				selector := c.Spec.(*networking.ServiceEntry).GetWorkloadSelector()
				if selector != nil && c.Namespace == namespace {
					want[keyOf(c)] = s.selectedBy(c)
				}
			}
			for _, e := range explained.Entries {
				if e.Namespace == namespace {
					got[e.Namespace+"/"+e.Name] = e.WhyNot == ""
				}
			}
			m.equal("what selects "+s.name, want, got)
		}
	}
}

// sourceName is contribution.name, of what Explain calls the source.
func sourceName(entry, hostname, source string) string {
	if source == "the host itself" {
		return hostname
	}
	if index, ok := strings.CutPrefix(source, "endpoints["); ok {
		return entry + "-" + strings.TrimSuffix(index, "]")
	}
	_, workload, _ := strings.Cut(source, " ") // without the kind
	name, cluster, _ := strings.Cut(workload, " of cluster ")
	return name + "/" + cluster
}
