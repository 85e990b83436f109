// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	"istio.io/api/label"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// The sizes that the API server of Kubernetes enforces for ServiceEntries.
// Elsewhere more is possible, so that more is worth a warning only.
const (
	maxEntryHosts     = 256
	maxEntryAddresses = 256
	maxEntryPorts     = 256
	maxEntryEndpoints = 4096
)

// serviceEntryRules are the rules of Istio 1.30 for a ServiceEntry, with warnings
// for repeated hosts and addresses, which Istio takes silently.
func serviceEntryRules(spec *field, c configstore.Config, entry *networking.ServiceEntry) {
	checkWorkloadSelector(spec, entry.WorkloadSelector)
	if entry.WorkloadSelector != nil && len(entry.Endpoints) > 0 {
		spec.child("endpoints").refuse("must be empty together with a workloadSelector")
	}
	checkEnum(spec.child("location"), entry.Location)
	checkEntryHosts(spec, entry)
	checkEntryAddresses(spec, entry)
	checkEntryPorts(spec, c, entry)
	warnAbove(spec.child("endpoints"), len(entry.Endpoints), maxEntryEndpoints)
	checkEntryResolution(spec, c, entry)
	checkHostsDistinguishable(spec, entry)
	checkExportTo(spec, c, entry.ExportTo, true)
}

func warnAbove(at *field, count, limit int) {
	if count > limit {
		at.warn("has %d elements; Kubernetes takes at most %d", count, limit)
	}
}

func checkEntryHosts(spec *field, entry *networking.ServiceEntry) {
	if len(entry.Hosts) == 0 {
		spec.child("hosts").refuse("must have at least one host")
	}
	warnAbove(spec.child("hosts"), len(entry.Hosts), maxEntryHosts)
	var seen repetitions[string]
	for i, host := range entry.Hosts {
		at := spec.elem("hosts", i)
		if host == "*" {
			at.refuse("must not be *")
			continue
		}
		checkWildcardDomain(at, host)
		if entry.Resolution != networking.ServiceEntry_DYNAMIC_DNS && isPartialWildcard(host) {
			at.warn("is %q; a wildcard that is not a whole label matches HTTP hosts only, no TLS server names", host)
		}
		if first, ok := seen.add(hostKey(host), i); ok {
			at.warn("repeats spec.hosts[%d]: %q", first, host)
		}
	}
}

func checkEntryAddresses(spec *field, entry *networking.ServiceEntry) {
	warnAbove(spec.child("addresses"), len(entry.Addresses), maxEntryAddresses)
	cidrAllowed := entry.Resolution == networking.ServiceEntry_NONE || entry.Resolution == networking.ServiceEntry_STATIC
	var seen repetitions[addressKey]
	for i, address := range entry.Addresses {
		at := spec.elem("addresses", i)
		checkSubnet(at, address)
		if !cidrAllowed && strings.Contains(address, "/") {
			at.refuse("must not be a CIDR block for resolution %s, is %q", entry.Resolution, address)
		}
		if first, ok := seen.add(addressKeyOf(address), i); ok {
			at.warn("repeats spec.addresses[%d]: %q", first, address)
		}
	}
}

func checkEntryPorts(spec *field, c configstore.Config, entry *networking.ServiceEntry) {
	warnAbove(spec.child("ports"), len(entry.Ports), maxEntryPorts)
	addressless := len(entry.Addresses) == 0 && !allocatesAddresses(c, entry)
	var names repetitions[string]
	var numbers repetitions[uint32]
	for at, port := range elements(spec, "ports", entry.Ports) {
		checkDNSLabel(at.child("name"), port.Name)
		names.refuse(at.child("name"), port.Name, at.index, "repeats spec.ports[%d].name: %q")
		checkPortNumber(at.child("number"), port.Number)
		numbers.refuse(at.child("number"), port.Number, at.index, "repeats spec.ports[%d].number: %d")
		checkPortNumberIfSet(at.child("targetPort"), port.TargetPort)
		checkProtocol(at.child("protocol"), port.Protocol)
		if p := parseProtocol(port.Protocol); addressless && (p == protocolTCP || p == protocolUnset) {
			at.child("protocol").warn("is %q without spec.addresses: the port takes in traffic to every address", port.Protocol)
		}
	}
}

// allocatesAddresses reports whether an entry without addresses can be given
// some, by the rules of Istio 1.30's allocation.
func allocatesAddresses(c configstore.Config, entry *networking.ServiceEntry) bool {
	return entry.Resolution != networking.ServiceEntry_NONE &&
		!strings.EqualFold(c.Labels[label.NetworkingEnableAutoallocateIp.Name], "false")
}

// checkHostsDistinguishable: behind a port that is routed by neither HTTP host
// nor SNI, several hosts cannot be distinguished.
func checkHostsDistinguishable(spec *field, entry *networking.ServiceEntry) {
	if entry.Resolution == networking.ServiceEntry_NONE || len(entry.Hosts) < 2 {
		return
	}
	for i, port := range entry.Ports {
		if port == nil {
			continue
		}
		// Unknown protocols are refused already.
		if p := parseProtocol(port.Protocol); !p.isHTTP() && !p.isTLS() && p != protocolUnknown {
			spec.elem("ports", i).child("protocol").refuse(
				"must be an HTTP or TLS protocol, as there are %d hosts, is %q", len(entry.Hosts), port.Protocol)
		}
	}
}
