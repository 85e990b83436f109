// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/internal/view"
)

// HostExplanation says where a host name in a namespace, and each of its
// endpoints, comes from.
type HostExplanation struct {
	Namespace string
	Hostname  registry.Hostname
	// Entries are the ServiceEntries that define the host, the oldest first.
	Entries []EntryExplanation
}

// EntryExplanation is the contribution of one ServiceEntry to a host.
type EntryExplanation struct {
	// Name is the name of the ServiceEntry.
	Name       string
	Created    time.Time
	Resolution registry.Resolution
	// Addresses are the addresses of its services, or UnspecifiedAddress.
	Addresses []string
	// Selects is true if its endpoints are the workloads with all labels of Selector.
	Selects  bool
	Selector registry.Labels
	// Endpoints are in the order of their contribution.
	Endpoints []EndpointExplanation
}

// EndpointExplanation is where one endpoint comes from.
type EndpointExplanation struct {
	Endpoint *registry.Endpoint
	// Source is the origin: "endpoints[1]" of the ServiceEntry, "the host itself" if the entry has
	// no endpoints, or the selected workload, for example "WorkloadEntry prod/vm-1 of cluster
	// east".
	Source string
	// Dropped says why the endpoint is not sent; empty if it is.
	Dropped string
}

// Host says where a host name in a namespace comes from.
func Host(c *serviceentry.Controller, namespace string, hostname registry.Hostname) HostExplanation {
	v := c.View()
	out := HostExplanation{Namespace: namespace, Hostname: hostname}
	all := contributions(v, namespace, hostname)
	for _, e := range v.Entries {
		h := hostOf(e, hostname)
		if h == nil || e.Config.Namespace != namespace {
			continue
		}
		x := EntryExplanation{
			Name: e.Config.Name, Created: e.Config.CreationTimestamp, Resolution: e.Resolution,
			Selects: e.Selects, Selector: e.Selector, Endpoints: endpointExplanations(all, e),
		}
		for _, s := range h.Services {
			x.Addresses = append(x.Addresses, s.DefaultAddress)
		}
		out.Entries = append(out.Entries, x)
	}
	return out
}

func endpointExplanations(all []contribution, entry *view.Entry) []EndpointExplanation {
	var out []EndpointExplanation
	for i, c := range all {
		if c.entry != entry {
			continue
		}
		e := EndpointExplanation{Endpoint: c.endpoint, Source: c.source, Dropped: c.dropped}
		j := slices.IndexFunc(all[:i], func(o contribution) bool { return o.dropped == "" && o.endpoint.Equal(c.endpoint) })
		if e.Dropped == "" && j >= 0 {
			e.Dropped = "it equals one of " + all[j].entry.Config.Name
		}
		out = append(out, e)
	}
	return out
}

// String returns a text of several lines.
func (h HostExplanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in namespace %s", h.Hostname, h.Namespace)
	if len(h.Entries) == 0 {
		b.WriteString(" is not defined by any ServiceEntry\n")
		return b.String()
	}
	b.WriteString("\n")
	for _, e := range h.Entries {
		fmt.Fprintf(&b, "  ServiceEntry %s, resolution %s, addresses %s", e.Name, e.Resolution, strings.Join(e.Addresses, ", "))
		if e.Selects {
			fmt.Fprintf(&b, ", selects {%s}", e.Selector)
		}
		b.WriteString("\n")
		for _, p := range e.Endpoints {
			fmt.Fprintf(&b, "    %s\n", p.text())
		}
		if len(e.Endpoints) == 0 {
			b.WriteString("    no endpoints\n")
		}
	}
	return b.String()
}

// text returns "address:port for port name (number) from source", and why it
// is not sent.
func (e EndpointExplanation) text() string {
	p := e.Endpoint
	address := net.JoinHostPort(strings.Join(p.Addresses, ","), strconv.FormatUint(uint64(p.EndpointPort), 10))
	out := fmt.Sprintf("%s for port %s (%d) from %s", address, p.ServicePortName, p.ServicePort, e.Source)
	if e.Dropped != "" {
		out += ", not sent: " + e.Dropped
	}
	return out
}
