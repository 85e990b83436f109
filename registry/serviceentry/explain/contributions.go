// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/internal/view"
)

// contribution is one endpoint of one host, and where it comes from.
type contribution struct {
	entry    *view.Entry
	endpoint *registry.Endpoint
	// source is the origin, as in EndpointExplanation.
	source string
	// dropped is the reason why the endpoint does not count, or empty.
	dropped string
}

// contributions returns all contributions to a host in a namespace, in order, including the ones
// that do not count.
func contributions(v *view.View, namespace string, hostname registry.Hostname) []contribution {
	var out []contribution
	for _, e := range v.Entries {
		if e.Config.Namespace == namespace {
			out = append(out, ofEntry(e, hostname)...)
		}
	}
	dropRoundRobin(out)
	return out
}

// ofEntry returns the contributions of an entry to one of its hosts; none if it has no
// such host.
func ofEntry(e *view.Entry, hostname registry.Hostname) []contribution {
	h := hostOf(e, hostname)
	if h == nil {
		return nil
	}
	var out []contribution
	add := func(endpoints []registry.Endpoint, source string) {
		for i := range endpoints {
			out = append(out, contribution{entry: e, endpoint: &endpoints[i], source: source})
		}
	}
	add(h.Self, "the host itself")
	for _, s := range e.Sources {
		if s.Workload == nil {
			add(s.Endpoints, fmt.Sprintf("endpoints[%d]", s.Position))
		} else {
			add(s.Endpoints, s.Workload.Key.String())
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
		} else if c.entry.Resolution == registry.DNSRoundRobinLB {
			c.dropped = "DNS_ROUND_ROBIN has one endpoint for a port, that of " + first.entry.Config.Name
		}
	}
}

// whyNot returns the reason why an entry that selects workloads does not select
// one; empty if it does.
func whyNot(e *view.Entry, w *view.Workload) string {
	labels := w.Endpoint.Attributes().Labels
	switch {
	case !e.Selector.SubsetOf(labels):
		return "the workload lacks labels: " + missingLabels(e.Selector, labels).String()
	case e.Config.Namespace != w.Key.Namespace:
		return "the workload is in namespace " + w.Key.Namespace
	case w.NeedsDNS && !e.Resolution.IsDNS():
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

// hostOf returns the host of an entry by its name, or nil.
func hostOf(e *view.Entry, hostname registry.Hostname) *view.Host {
	i := slices.IndexFunc(e.Hosts, func(h view.Host) bool { return h.Hostname == hostname })
	if i < 0 {
		return nil
	}
	return &e.Hosts[i]
}
