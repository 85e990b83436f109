// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// workloadEntryRules are the rules of Istio 1.30 for a WorkloadEntry of its own.
func workloadEntryRules(spec *field, c configstore.Config, entry *networking.WorkloadEntry) {
	checkWorkload(spec, entry, nil)
	if len(entry.Labels) == 0 && len(c.Labels) == 0 {
		// Beyond Istio, which lets such an entry wait for ever.
		spec.child("labels").warn("is empty, as are the object's labels: nothing will ever select this entry")
	}
}

// checkWorkload checks the content of a WorkloadEntry or of an inline endpoint.
// owner has the ports of the STATIC entry around it, or is nil.
func checkWorkload(at *field, entry *networking.WorkloadEntry, owner *entryPorts) {
	path, unix := strings.CutPrefix(entry.Address, unixScheme)
	switch {
	case entry.Address == "" && entry.Network == "":
		at.child("address").refuse("is required, as there is no network")
	case entry.Address == "":
		at.child("address").warn("is unset; only the network's gateways reach this workload")
	case unix:
		checkUnixPath(at.child("address"), path)
		if len(entry.Ports) > 0 {
			at.child("ports").refuse("must be empty for a unix domain socket")
		}
		if owner != nil && owner.count != 1 {
			at.child("address").refuse("must not be a unix domain socket, as the entry has not exactly one port but %d", owner.count)
		}
	case isIP(entry.Address):
	case owner != nil:
		at.child("address").refuse("must be an IP address or a unix domain socket for resolution STATIC, is %q", entry.Address)
	default:
		checkIPOrFQDN(at.child("address"), entry.Address)
	}
	checkWorkloadPorts(at, entry.Ports, owner)
	checkLabels(at, "labels", entry.Labels)
}

// checkWorkloadPorts checks the map from the names of service ports to the
// workload's own ports. owner may be nil.
func checkWorkloadPorts(at *field, ports map[string]uint32, owner *entryPorts) {
	names := make([]string, 0, 8) // of most endpoints, on the stack
	for name := range ports {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case !isDNSLabel(name):
			at.entry("ports", name).refuse("key must be a DNS label (%s)", dnsLabelRule)
		case owner != nil && !owner.has(name):
			at.entry("ports", name).refuse("must name a port of the entry")
		}
		checkPortNumber(at.entry("ports", name), ports[name])
	}
}

// entryPorts are the ports of a ServiceEntry, by their names.
type entryPorts struct {
	count int
	names repetitions[string]
}

func portsOf(entry *networking.ServiceEntry) *entryPorts {
	ports := entryPorts{count: len(entry.Ports)}
	for i, port := range entry.Ports {
		if port != nil {
			ports.names.add(port.Name, i)
		}
	}
	return &ports
}

func (p *entryPorts) has(name string) bool { return p.names.has(name) }
