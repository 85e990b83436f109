// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"maps"
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
	entries    []modelEntry
	workloads  []*workload
}

type modelEntry struct {
	*definition
	hosts []hostDefinition
}

// newModel reads the stores.
func (c *Controller) newModel() *model {
	m := &model{conversion: conversion{options: &c.options, settings: c.state.Load().settings}}
	c.foreignMu.Lock()
	m.workloads = slices.Collect(maps.Values(c.foreign))
	c.foreignMu.Unlock()
	if !c.options.WorkloadEntriesOnly {
		for _, config := range c.configs.List(istio.ServiceEntry, configstore.NamespaceAll) {
			if d, hosts := m.conversion.definition(config); d != nil {
				m.entries = append(m.entries, modelEntry{d, hosts})
			}
		}
	}
	for _, config := range c.configs.List(istio.WorkloadEntry, configstore.NamespaceAll) {
		if w := m.conversion.ownWorkload(config); w != nil {
			m.workloads = append(m.workloads, w)
		}
	}
	slices.SortFunc(m.workloads, (*workload).compare)
	slices.SortFunc(m.entries, func(d, e modelEntry) int {
		return cmp.Or(d.created().Compare(e.created()), nameOf(d.config).compare(nameOf(e.config)))
	})
	return m
}

// contribution is one endpoint of one host, and where it comes from.
type contribution struct {
	entry    *definition
	host     *hostDefinition
	endpoint *registry.Endpoint
	// port is the position of the endpoint's port in the entry: a number may be
	// there twice.
	port   int
	source Source
	// dropped says why the endpoint does not count; empty if it does.
	dropped string
}

// hosts returns the contributions to every host, in the order in which they are
// made, also those that do not count. Hosts without any are in it.
func (m *model) hosts() map[hostKey][]contribution {
	out := map[hostKey][]contribution{}
	for _, d := range m.entries {
		for i := range d.hosts {
			k := hostKey{d.config.Namespace, d.hosts[i].hostname}
			out[k] = append(out[k], m.contributions(d.definition, &d.hosts[i])...)
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
	add := func(m *member, s Source) {
		for i := range m.endpoints {
			out = append(out, contribution{entry: d, host: h, endpoint: &m.endpoints[i], port: i, source: s})
		}
	}
	switch {
	case d.hostIsEndpoint:
		add(m.conversion.selfMember(nil, d, h.hostname), Source{Kind: SourceHost})
	case d.selects:
		for _, w := range m.workloads {
			if d.whyNot(w) == "" {
				add(selectedMember(nil, d, w), Source{Kind: SourceWorkload, Workload: w.key()})
			}
		}
	default:
		members := inlineMembers{conversion: &m.conversion, definition: d}
		for i, spec := range d.inline() {
			if spec != nil {
				add(members.convert(i, spec, nil), Source{Kind: SourceInline, Index: i})
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
			c.dropped = "DNS_ROUND_ROBIN has one endpoint for a port, that of " + first.entry.config.Name
		}
	}
}

// whyNot returns the reason why an entry that selects workloads does not select
// one; empty if it does.
func (d *definition) whyNot(w *workload) string {
	labels := w.attributes.Labels
	switch {
	case !d.selector.SubsetOf(labels):
		return "the workload lacks labels: " + missingLabels(d.selector, labels).String()
	case d.config.Namespace != w.namespace():
		return "the workload is in namespace " + w.namespace()
	case !d.mayServe(w):
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
