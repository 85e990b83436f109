// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// WorkloadExplanation says which ServiceEntries select a workload, and why others
// do not.
type WorkloadExplanation struct {
	Key registry.WorkloadKey
	// Ignored says why the workload does not count at all; empty if it does.
	Ignored string
	// Endpoint is that of the workload, without a port; nil if it is ignored.
	Endpoint *registry.Endpoint
	// Entries are the ServiceEntries with a selector that are in the workload's
	// namespace or select its labels, sorted by namespace and name.
	Entries []SelectionExplanation
}

// SelectionExplanation says whether a ServiceEntry selects a workload.
type SelectionExplanation struct {
	Namespace, Name string
	Hosts           []registry.Hostname
	// WhyNot is empty if the ServiceEntry selects the workload.
	WhyNot string
	// Ports are the ports to connect to, by service port name; nil if it is not
	// selected. Empty: the ServiceEntry has no ports, so that there are no
	// endpoints.
	Ports map[string]uint32
	// UnusedPorts are names in the workload's port map that are not names of ports
	// of the ServiceEntry, sorted.
	UnusedPorts []string
}

// ExplainWorkload says which ServiceEntries select a workload: a WorkloadEntry of
// this registry, for which the cluster may be left empty, or a workload that
// another registry announced. It costs as much as Explain.
func (c *Controller) ExplainWorkload(key registry.WorkloadKey) WorkloadExplanation {
	m := c.newModel()
	if key.Kind == registry.WorkloadEntry && key.Cluster == "" {
		key.Cluster = c.options.ClusterID
	}
	out := WorkloadExplanation{Key: key}
	i := slices.IndexFunc(m.workloads, func(w *workload) bool { return w.key() == key })
	if i < 0 {
		out.Ignored = c.whyIgnored(key)
		return out
	}
	w := m.workloads[i]
	e := w.endpoint()
	out.Endpoint = &e
	for _, d := range m.entries {
		sees := d.config.Namespace == key.Namespace || d.selector.SubsetOf(w.attributes.Labels) && len(d.selector) > 0
		if d.selects && sees {
			out.Entries = append(out.Entries, d.explainSelection(w))
		}
	}
	slices.SortFunc(out.Entries, func(e, f SelectionExplanation) int {
		return objectName{e.Namespace, e.Name}.compare(objectName{f.Namespace, f.Name})
	})
	return out
}

func (c *Controller) whyIgnored(key registry.WorkloadKey) string {
	if key.Kind != registry.WorkloadEntry || key.Cluster != c.options.ClusterID {
		return "no registry has announced it"
	}
	config := c.configs.Get(istio.WorkloadEntry, key.Name, key.Namespace)
	switch {
	case config == nil:
		return "it does not exist"
	case !c.options.IgnoreHealth && !healthy(config):
		return "it is not healthy"
	default:
		return "it has no spec"
	}
}

func (d modelEntry) explainSelection(w *workload) SelectionExplanation {
	out := SelectionExplanation{Namespace: d.config.Namespace, Name: d.config.Name, WhyNot: d.whyNot(w)}
	for _, h := range d.hosts {
		out.Hosts = append(out.Hosts, h.hostname)
	}
	if out.WhyNot != "" {
		return out
	}
	out.Ports = map[string]uint32{}
	for i, p := range d.ports {
		out.Ports[p.Name] = d.endpointPort(i, w.unix, w.ports())
	}
	for name := range w.ports() {
		if _, used := out.Ports[name]; !used {
			out.UnusedPorts = append(out.UnusedPorts, name)
		}
	}
	slices.Sort(out.UnusedPorts)
	return out
}

// String returns a text of several lines.
func (e WorkloadExplanation) String() string {
	var b strings.Builder
	b.WriteString(Source{Kind: SourceWorkload, Workload: e.Key}.String())
	if e.Ignored != "" {
		b.WriteString(" is ignored: " + e.Ignored + "\n")
		return b.String()
	}
	fmt.Fprintf(&b, ", address %s, labels {%s}\n", strings.Join(e.Endpoint.Addresses, ","), e.Endpoint.Attributes().Labels)
	for _, s := range e.Entries {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	if len(e.Entries) == 0 {
		b.WriteString("  no ServiceEntry of its namespace selects workloads\n")
	}
	return b.String()
}

// String returns one line.
func (s SelectionExplanation) String() string {
	hosts := make([]string, len(s.Hosts))
	for i, h := range s.Hosts {
		hosts[i] = string(h)
	}
	who := fmt.Sprintf("ServiceEntry %s/%s (%s)", s.Namespace, s.Name, strings.Join(hosts, ", "))
	if s.WhyNot != "" {
		return who + " does not select it: " + s.WhyNot
	}
	var ports []string
	for name, number := range s.Ports {
		ports = append(ports, fmt.Sprintf("%s→%d", name, number))
	}
	slices.Sort(ports)
	out := who + " selects it, ports " + strings.Join(ports, " ")
	if len(ports) == 0 {
		out = who + " selects it, but has no ports"
	}
	if len(s.UnusedPorts) > 0 {
		out += "; it has no ports " + strings.Join(s.UnusedPorts, ", ")
	}
	return out
}
