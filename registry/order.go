// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"strings"
)

// The orders of this file are the same in every replica, because they depend only on the compared
// objects. Each is a total order: two objects that compare equal are the same object for lookups
// and lists.

// CompareServices orders services by hostname, namespace, creation time, object
// name and address. It is the order of ServiceDiscovery.Services.
func CompareServices(s, t *Service) int {
	// Compare the host name first and alone, because it nearly always decides.
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

// ComparePrecedence orders services that compete for a host name; the first one wins. It compares
// the age (the older service comes first), the namespace, and the ObjectName. (Istio 1.30 compares
// the name of a service before its namespace; here that name is the host, so it never decides.)
// Services of one object, which differ in the entries of the object's lists, are ordered by host
// name and address. Services that are still equal come from several registries, or were created by
// hand: they are ordered by provider, name, resource version and resolution.
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

// CompareWorkloads orders workloads by their keys. Of several workloads at one address, the first
// gives a proxy its labels. It is also the order of the workloads that a new handler receives
// first.
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
