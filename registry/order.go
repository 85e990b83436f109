// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"strings"
)

// The orders of this file are the same in every replica: they depend on nothing
// but what is compared. Each is a total order: what compares equal is the same
// object as far as lookups and lists are concerned.

// CompareServices orders services by hostname, namespace, creation time, object
// name and address. It is the order of ServiceDiscovery.Services.
func CompareServices(s, t *Service) int {
	// Nearly always the host name decides, so nothing else is read before it.
	if c := strings.Compare(string(s.Hostname), string(t.Hostname)); c != 0 || s == t {
		return c
	}
	if c := strings.Compare(s.Attributes.Namespace, t.Attributes.Namespace); c != 0 {
		return c
	}
	if c := s.CreationTime.Compare(t.CreationTime); c != 0 {
		return c
	}
	if c := strings.Compare(s.Attributes.ObjectName, t.Attributes.ObjectName); c != 0 {
		return c
	}
	return strings.Compare(s.DefaultAddress, t.DefaultAddress)
}

// ComparePrecedence orders services that compete for a host name; the first one
// wins. The older service comes first; of one age, that of the first namespace,
// then of the first ObjectName. (In Istio 1.30 the name of a service comes before
// its namespace; that name is the host, so that it never decides here.) Services
// of one object, which differ in what the object lists, are ordered by host name
// and address. What is still equal comes from several registries, or was made by
// hand: it is ordered by provider, name, resource version and resolution.
func ComparePrecedence(s, t *Service) int {
	if s == t {
		return 0
	}
	if c := s.CreationTime.Compare(t.CreationTime); c != 0 {
		return c
	}
	a, b := &s.Attributes, &t.Attributes
	return cmp.Or(
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.ObjectName, b.ObjectName),
		strings.Compare(string(s.Hostname), string(t.Hostname)),
		strings.Compare(s.DefaultAddress, t.DefaultAddress),
		strings.Compare(string(a.Provider), string(b.Provider)),
		strings.Compare(a.Name, b.Name),
		strings.Compare(s.ResourceVersion, t.ResourceVersion),
		cmp.Compare(s.Resolution, t.Resolution),
	)
}

// CompareWorkloads orders workloads by their keys. It decides which of
// several workloads at one address gives a proxy its labels, and the order in
// which a new handler gets those that exist.
func CompareWorkloads(v, w *WorkloadInstance) int { return v.Key().Compare(w.Key()) }

// Compare orders keys by kind, pods first, namespace, name and cluster.
func (k WorkloadKey) Compare(l WorkloadKey) int {
	return cmp.Or(
		cmp.Compare(k.Kind, l.Kind),
		strings.Compare(k.Namespace, l.Namespace),
		strings.Compare(k.Name, l.Name),
		strings.Compare(string(k.Cluster), string(l.Cluster)),
	)
}

// CompareNetworkGateways orders gateways by network, cluster, address, ports and
// service account. It is the order of ServiceDiscovery.NetworkGateways.
func CompareNetworkGateways(g, h NetworkGateway) int {
	return cmp.Or(
		strings.Compare(g.Network, h.Network),
		strings.Compare(string(g.Cluster), string(h.Cluster)),
		strings.Compare(g.Addr, h.Addr),
		cmp.Compare(g.Port, h.Port),
		cmp.Compare(g.HBONEPort, h.HBONEPort),
		strings.Compare(g.ServiceAccount, h.ServiceAccount),
	)
}
