// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/internal/view"
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

// Workload explains which ServiceEntries select a workload. The workload is a WorkloadEntry of the
// registry, with an optional cluster in the key, or was announced by another registry.
func Workload(c *serviceentry.Controller, key registry.WorkloadKey) WorkloadExplanation {
	v := c.View()
	if key.Kind == registry.WorkloadEntry && key.Cluster == "" {
		key.Cluster = v.Cluster
	}
	out := WorkloadExplanation{Key: key}
	i := slices.IndexFunc(v.Workloads, func(w *view.Workload) bool { return w.Key == key })
	if i < 0 {
		out.Ignored = v.Ignored(key)
		return out
	}
	w := v.Workloads[i]
	out.Endpoint = &w.Endpoint
	for _, e := range v.Entries {
		sees := e.Config.Namespace == key.Namespace || len(e.Selector) > 0 && e.Selector.SubsetOf(w.Endpoint.Attributes().Labels)
		if e.Selects && sees {
			out.Entries = append(out.Entries, selection(e, w))
		}
	}
	slices.SortFunc(out.Entries, func(e, f SelectionExplanation) int {
		return cmp.Or(strings.Compare(e.Namespace, f.Namespace), strings.Compare(e.Name, f.Name))
	})
	return out
}

func selection(e *view.Entry, w *view.Workload) SelectionExplanation {
	out := SelectionExplanation{Namespace: e.Config.Namespace, Name: e.Config.Name, WhyNot: whyNot(e, w)}
	for _, h := range e.Hosts {
		out.Hosts = append(out.Hosts, h.Hostname)
	}
	if out.WhyNot != "" {
		return out
	}
	out.Ports = map[string]uint32{}
	for _, source := range e.Sources {
		if source.Workload != w {
			continue
		}
		for i := range source.Endpoints {
			out.Ports[source.Endpoints[i].ServicePortName] = source.Endpoints[i].EndpointPort
		}
	}
	for name := range w.Ports {
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
	b.WriteString(e.Key.String())
	if e.Ignored != "" {
		b.WriteString(" is ignored: " + e.Ignored + "\n")
		return b.String()
	}
	fmt.Fprintf(&b, ", address %s, labels {%s}\n", strings.Join(e.Endpoint.Addresses, ","), e.Endpoint.Attributes().Labels)
	for _, s := range e.Entries {
		fmt.Fprintf(&b, "  %s\n", s.text())
	}
	if len(e.Entries) == 0 {
		b.WriteString("  no ServiceEntry of its namespace selects workloads\n")
	}
	return b.String()
}

// text returns one line.
func (s SelectionExplanation) text() string {
	hosts := make([]string, len(s.Hosts))
	for i, h := range s.Hosts {
		hosts[i] = string(h)
	}
	entry := fmt.Sprintf("ServiceEntry %s/%s (%s)", s.Namespace, s.Name, strings.Join(hosts, ", "))
	if s.WhyNot != "" {
		return entry + " does not select it: " + s.WhyNot
	}
	var ports []string
	for name, number := range s.Ports {
		ports = append(ports, fmt.Sprintf("%s→%d", name, number))
	}
	slices.Sort(ports)
	out := entry + " selects it, ports " + strings.Join(ports, " ")
	if len(ports) == 0 {
		out = entry + " selects it, but has no ports"
	}
	if len(s.UnusedPorts) > 0 {
		out += "; it has no ports " + strings.Join(s.UnusedPorts, ", ")
	}
	return out
}
