// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"istio.io/api/label"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// checkEntryResolution holds the rules that depend on a ServiceEntry's
// resolution, most of them about its endpoints.
func checkEntryResolution(spec *field, c configstore.Config, entry *networking.ServiceEntry) {
	switch entry.Resolution {
	case networking.ServiceEntry_NONE:
		if len(entry.Endpoints) > 0 {
			spec.child("endpoints").refuse("must be empty for resolution NONE")
		}
		if entry.WorkloadSelector != nil {
			spec.child("workloadSelector").warn("has no effect for resolution NONE")
		}
	case networking.ServiceEntry_STATIC:
		ports := portsOf(entry)
		for at, endpoint := range elements(spec, "endpoints", entry.Endpoints) {
			checkWorkload(at, endpoint, ports)
		}
	case networking.ServiceEntry_DNS, networking.ServiceEntry_DNS_ROUND_ROBIN:
		checkDNSEntry(spec, entry)
	case networking.ServiceEntry_DYNAMIC_DNS:
		checkDynamicDNSEntry(spec, c, entry)
	default:
		checkEnum(spec.child("resolution"), entry.Resolution)
	}
}

func checkDNSEntry(spec *field, entry *networking.ServiceEntry) {
	if len(entry.Endpoints) == 0 {
		for i, host := range entry.Hosts {
			switch {
			case host == "*": // refused already
			case isWildcarded(host):
				spec.elem("hosts", i).refuse("must not be a wildcard for resolution %s without endpoints, is %q", entry.Resolution, host)
			case isNumeric(host):
				spec.elem("hosts", i).refuse("must not be a number for resolution %s without endpoints, is %q", entry.Resolution, host)
			}
		}
	}
	if entry.Resolution == networking.ServiceEntry_DNS_ROUND_ROBIN && len(entry.Endpoints) > 1 {
		spec.child("endpoints").refuse("must have at most one element for resolution DNS_ROUND_ROBIN, has %d", len(entry.Endpoints))
	}
	ports := portsOf(entry)
	for at, endpoint := range elements(spec, "endpoints", entry.Endpoints) {
		checkIPOrFQDN(at.child("address"), endpoint.Address)
		checkWorkloadPorts(at, endpoint.Ports, ports)
		checkLabels(at, "labels", endpoint.Labels)
	}
	if len(entry.Addresses) == 0 || len(entry.Hosts) < 2 {
		return
	}
	for i, port := range entry.Ports {
		if port != nil && parseProtocol(port.Protocol).isTCP() {
			spec.elem("ports", i).child("protocol").warn(
				"is %s, which is matched by address alone: the hosts share their addresses", port.Protocol)
		}
	}
}

func checkDynamicDNSEntry(spec *field, c configstore.Config, entry *networking.ServiceEntry) {
	for i, host := range entry.Hosts {
		if !isWildcarded(host) {
			spec.elem("hosts", i).refuse("must be a wildcard for resolution DYNAMIC_DNS, is %q", host)
		}
	}
	if len(entry.Addresses) > 0 {
		spec.child("addresses").refuse("must be empty for resolution DYNAMIC_DNS")
	}
	if len(entry.Endpoints) > 0 {
		spec.child("endpoints").refuse("must be empty for resolution DYNAMIC_DNS")
	}
	if entry.WorkloadSelector != nil {
		spec.child("workloadSelector").warn("has no effect for resolution DYNAMIC_DNS")
	}
	for i, port := range entry.Ports {
		if port == nil {
			continue
		}
		switch parseProtocol(port.Protocol) {
		case protocolHTTP, protocolTLS, protocolGRPC, protocolHTTP2, protocolUnknown: // unknown ones are refused already
		default:
			spec.elem("ports", i).child("protocol").refuse(
				"must be HTTP, HTTP2, GRPC or TLS for resolution DYNAMIC_DNS, is %q", port.Protocol)
		}
	}
	waypoint := c.Labels[label.IoIstioUseWaypoint.Name]
	if entry.Location == networking.ServiceEntry_MESH_INTERNAL && waypoint != "" && waypoint != "none" {
		spec.child("location").refuse("must be MESH_EXTERNAL for resolution DYNAMIC_DNS with a waypoint, is MESH_INTERNAL")
	}
}
