// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// model is the state of the registry computed from the stores, by following the
// rules one by one. It shares the conversion of single objects with the registry,
// and nothing else: no index, no memory of what was before. It is slow, and meant
// to check and to explain.
type model struct {
	conversion conversion
	entries    []*definition
	workloads  []*workload
}

// newModel reads the stores.
func (c *Controller) newModel() *model {
	c.mu.RLock()
	m := &model{conversion: c.newConversion()}
	for _, w := range c.foreign {
		m.workloads = append(m.workloads, w)
	}
	c.mu.RUnlock()
	m.conversion.intern = nil
	if c.options.WorkloadEntriesOnly {
		return m
	}
	for _, config := range c.configs.List(istio.ServiceEntry, configstore.NamespaceAll) {
		if d, ok := m.conversion.definition(config); ok {
			m.entries = append(m.entries, d)
		}
	}
	for _, config := range c.configs.List(istio.WorkloadEntry, configstore.NamespaceAll) {
		if w := m.conversion.workload(config); w != nil {
			m.workloads = append(m.workloads, newWorkload(w, isUnixEntry(config)))
		}
	}
	slices.SortFunc(m.workloads, (*workload).compare)
	slices.SortFunc(m.entries, func(d, e *definition) int {
		return cmp.Or(d.created.Compare(e.created), d.object.compare(e.object))
	})
	return m
}

// contribution is one endpoint of one host, and where it comes from.
type contribution struct {
	entry    *definition
	host     *hostDefinition
	endpoint *registry.Endpoint
	source   Source
	// workload is nil unless the entry selects it.
	workload *workload
	// dropped says why the endpoint does not count; empty if it does.
	dropped string
}

// hosts returns the contributions to every host, in the order in which they are
// made, also those that do not count. Hosts without any are in it.
func (m *model) hosts() map[hostKey][]contribution {
	out := map[hostKey][]contribution{}
	for _, d := range m.entries {
		for i := range d.hosts {
			k := hostKey{d.object.namespace, d.hosts[i].hostname}
			out[k] = append(out[k], m.contributions(d, &d.hosts[i])...)
		}
	}
	for _, list := range out {
		dropRoundRobin(list)
	}
	return out
}

// contributions returns those of an entry to one of its hosts.
func (m *model) contributions(d *definition, h *hostDefinition) []contribution {
	var out []contribution
	add := func(endpoints []registry.Endpoint, s Source, w *workload) {
		for i := range endpoints {
			out = append(out, contribution{entry: d, host: h, endpoint: &endpoints[i], source: s, workload: w})
		}
	}
	switch {
	case d.hostIsEndpoint:
		add(m.conversion.hostEndpoints(d, h.hostname), Source{Kind: SourceHost}, nil)
	case d.selects:
		for _, w := range m.workloads {
			if d.whyNot(w) == "" {
				add(d.endpointsOf(w.base, w.unix, w.instance.PortMap), Source{Kind: SourceWorkload, Workload: w.instance.Key()}, w)
			}
		}
	default:
		for i, spec := range d.endpoints {
			if spec != nil {
				add(m.conversion.inlineEndpoints(d, i, spec), Source{Kind: SourceInline, Index: i}, nil)
			}
		}
	}
	return out
}

// dropRoundRobin applies the rule for DNS_ROUND_ROBIN: an endpoint does not count
// if one before it has the same service port.
func dropRoundRobin(list []contribution) {
	taken := map[uint32]*contribution{}
	for i := range list {
		c := &list[i]
		first := taken[c.endpoint.ServicePort]
		if first == nil {
			taken[c.endpoint.ServicePort] = c
		} else if c.entry.resolution == registry.DNSRoundRobinLB {
			c.dropped = "DNS_ROUND_ROBIN has one endpoint for a port, that of " + first.entry.object.name
		}
	}
}

// whyNot returns the reason why an entry that selects workloads does not select
// one; empty if it does.
func (d *definition) whyNot(w *workload) string {
	labels := w.base.Attributes().Labels
	switch {
	case !d.selector.SubsetOf(labels):
		return "the workload lacks labels: " + missingLabels(d.selector, labels).String()
	case d.object.namespace != w.instance.Namespace:
		return "the workload is in namespace " + w.instance.Namespace
	case !d.mayServe(w.instance):
		return "the address of the workload is not an IP address, and the resolution is not DNS"
	default:
		return ""
	}
}

func missingLabels(selector, labels registry.Labels) registry.Labels {
	out := registry.Labels{}
	for k, v := range selector {
		if got, ok := labels[k]; !ok || got != v {
			out[k] = v
		}
	}
	return out
}
