// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

func (w *world) describeService(c configstore.Config, host, address string) string {
	spec := c.Spec.(*networking.ServiceEntry)
	resolution := map[networking.ServiceEntry_Resolution]string{
		networking.ServiceEntry_STATIC: "ClientSide", networking.ServiceEntry_DNS: "DNS",
		networking.ServiceEntry_DNS_ROUND_ROBIN: "DNSRoundRobin", networking.ServiceEntry_NONE: "Passthrough",
		networking.ServiceEntry_DYNAMIC_DNS: "DynamicDNS",
	}[spec.GetResolution()]
	ports := ""
	for _, p := range spec.GetPorts() {
		ports += fmt.Sprintf(" %s/%d/%s", p.GetName(), p.GetNumber(), cmp.Or(strings.ToUpper(p.GetProtocol()), "UnsupportedProtocol"))
	}
	distribution := cmp.Or(c.Annotations["networking.istio.io/traffic-distribution"], w.namespaces[c.Namespace])
	if distribution == "preferClose" {
		distribution = "PreferSameZone"
	}
	if distribution != "PreferSameNode" && distribution != "PreferSameZone" {
		distribution = ""
	}
	strategy := ""
	if c.Annotations["istio.io/connect-strategy"] == "race_first_tcp_connect" {
		strategy = "RaceFirstTCPConnect"
	}
	visibility := w.visibility
	if visibility == registry.VisibilityPublic || visibleIf(w.namespaces[c.Namespace]) != nil {
		visibility = ""
	}
	return fmt.Sprintf("%s/%s/%s/%s %s %s %s %s %s external=%t sans=%v export=%v created=%d ports%s",
		c.Namespace, c.Name, host, address, resolution, distribution, visibility, strategy, w.allocated(c, host), spec.GetLocation() == networking.ServiceEntry_MESH_EXTERNAL,
		spec.GetSubjectAltNames(), sortedCopy(spec.GetExportTo()), c.CreationTimestamp.Unix(), ports)
}

// allocated returns the addresses in the status of an entry for a host: of several of a
// family the last.
func (w *world) allocated(c configstore.Config, host string) string {
	spec := c.Spec.(*networking.ServiceEntry)
	status, ok := c.Status.(*networking.ServiceEntryStatus)
	if w.byHash {
		return ""
	}
	if !ok || len(spec.GetAddresses()) > 0 || spec.GetResolution() == networking.ServiceEntry_NONE ||
		c.Labels["networking.istio.io/enable-autoallocate-ip"] == "False" {
		return "+"
	}
	v4, v6 := "", ""
	for _, a := range status.GetAddresses() {
		switch ip, err := netip.ParseAddr(a.GetValue()); {
		case a.GetHost() != host || err != nil:
		case ip.Is4():
			v4 = a.GetValue()
		default:
			v6 = a.GetValue()
		}
	}
	return v4 + "+" + v6
}

func (m *modelSystem) showService(s *registry.Service) string {
	ports := ""
	for _, p := range s.Ports {
		ports += fmt.Sprintf(" %s/%d/%s", p.Name, p.Number, p.Protocol)
	}
	allocated := ""
	if !m.byHash { // see checkAllocation
		allocated = s.AutoAllocatedIPv4 + "+" + s.AutoAllocatedIPv6
	}
	return fmt.Sprintf("%s %s %s %s %s %s external=%t sans=%v export=%v created=%d ports%s",
		s.ResourceName(), s.Resolution, s.Attributes.TrafficDistribution, s.Attributes.Visibility, s.Attributes.DNSConnectStrategy, allocated, s.MeshExternal, s.ServiceAccounts, s.Attributes.ExportTo, s.CreationTime.Unix(), ports)
}

func describeEndpoint(e *registry.Endpoint) string {
	a := e.Attributes()
	return fmt.Sprintf("%v:%d port %d %s health=%s workload=%s/%s labels=%s sa=%s network=%s locality=%s cluster=%s weight=%d tls=%s",
		sortedCopy(e.Addresses), e.EndpointPort, e.ServicePort, e.ServicePortName, e.HealthStatus, a.Namespace, e.WorkloadName,
		a.Labels, a.ServiceAccount, a.Network, a.Locality, a.ClusterID, a.LbWeight, a.TLSMode)
}

func describeWorkload(e *registry.Endpoint, ports map[string]uint32) string {
	return fmt.Sprintf("%s %v", describeEndpoint(e), ports)
}

func describeInstance(service string, e *registry.Endpoint) string {
	return fmt.Sprintf("%s %d %s", service, e.ServicePort, describeEndpoint(e))
}

func sortedCopy(list []string) []string { return slices.Sorted(slices.Values(list)) }
