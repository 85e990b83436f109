// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"slices"
	"strings"
)

// Endpoint is one port of one workload, as a member of a service. It is Istio's IstioEndpoint,
// divided in two: Endpoint has the fields that differ between the endpoints of a service, and
// Shared the fields that many of them have in common.
type Endpoint struct {
	// Addresses are IP addresses, a host name, or the path of a unix socket with
	// its "unix://" prefix cut off. The first is the primary one; more than one
	// means dual stack. Equal ignores their order.
	Addresses []string
	// EndpointPort is the port that connections go to; 0 for a unix socket.
	EndpointPort uint32
	// ServicePort is the number of the service port that the endpoint serves. If it is 0,
	// ServicePortName identifies the port. It is Istio's LegacyClusterPortKey.
	ServicePort uint32
	// HealthStatus decides whether a proxy uses the endpoint.
	HealthStatus HealthStatus
	// ServicePortName is the name of the service port that the endpoint serves.
	ServicePortName string
	// WorkloadName is the name of the workload for telemetry.
	WorkloadName string
	// Shared has the attributes that the endpoint has in common with others; nil means that all of
	// them are zero. Read it through Attributes.
	Shared *EndpointAttributes
}

// EndpointAttributes are attributes that endpoints have in common. A registry keeps one copy for
// all endpoints with equal attributes.
type EndpointAttributes struct {
	// Labels are the workload's labels, plus the labels of its topology.
	Labels Labels
	// ServiceAccount is the workload's identity, a SPIFFE ID.
	ServiceAccount string
	// Network is the network that the addresses belong to.
	Network string
	// Locality is "region/zone/subzone"; the last parts may be missing.
	Locality string
	// ClusterID is the cluster that the workload runs in.
	ClusterID ClusterID
	// LbWeight is the share of the traffic; 0 means 1, but is not equal to it.
	LbWeight uint32
	// SendUnhealthyEndpoints is set if the endpoint is sent to proxies even when it is unhealthy.
	SendUnhealthyEndpoints bool
	// DiscoverableFromSameCluster restricts the endpoint to proxies of ClusterID. The restriction
	// does not apply if the proxy or the endpoint has no cluster.
	DiscoverableFromSameCluster bool
	// TLSMode is "istio", "disabled" or a value of the label
	// security.istio.io/tlsMode.
	TLSMode string
	// Namespace is the namespace of the workload.
	Namespace string
	// HostName and SubDomain are the DNS identity of a pod.
	HostName  string
	SubDomain string
	// NodeName is the node that the workload runs on.
	NodeName string
}

// HealthStatus is the health of an endpoint.
type HealthStatus uint8

// The health states. All but UnHealthy count as usable when an endpoint appears.
const (
	HealthUnset HealthStatus = iota
	Healthy
	UnHealthy
	Draining
	Terminating
)

// String returns "Unset", "Healthy", "UnHealthy", "Draining" or "Terminating".
func (h HealthStatus) String() string {
	switch h {
	case HealthUnset:
		return "Unset"
	case Healthy:
		return "Healthy"
	case UnHealthy:
		return "UnHealthy"
	case Draining:
		return "Draining"
	case Terminating:
		return "Terminating"
	default:
		return "HealthStatus(?)"
	}
}

// noAttributes replaces a nil Shared. It is never written.
var noAttributes EndpointAttributes //nolint:gochecknoglobals // immutable, as everything a registry hands out

// Attributes returns the shared attributes; never nil.
func (e *Endpoint) Attributes() *EndpointAttributes {
	if e.Shared == nil {
		return &noAttributes
	}
	return e.Shared
}

// Address returns the primary address, or "".
func (e *Endpoint) Address() string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return e.Addresses[0]
}

// Equal reports whether both are equal in every field, ignoring the order of the addresses.
func (e *Endpoint) Equal(f *Endpoint) bool {
	if e == f || e == nil || f == nil {
		return e == f
	}
	return e.EndpointPort == f.EndpointPort && e.ServicePort == f.ServicePort &&
		e.HealthStatus == f.HealthStatus && e.ServicePortName == f.ServicePortName &&
		e.WorkloadName == f.WorkloadName && sameAddresses(e.Addresses, f.Addresses) &&
		e.Attributes().Equal(f.Attributes())
}

// Equal reports whether all attributes are equal.
func (a *EndpointAttributes) Equal(b *EndpointAttributes) bool {
	return a == b || a.ServiceAccount == b.ServiceAccount && a.Network == b.Network &&
		a.Locality == b.Locality && a.ClusterID == b.ClusterID && a.LbWeight == b.LbWeight &&
		a.SendUnhealthyEndpoints == b.SendUnhealthyEndpoints &&
		a.DiscoverableFromSameCluster == b.DiscoverableFromSameCluster &&
		a.TLSMode == b.TLSMode && a.Namespace == b.Namespace &&
		a.HostName == b.HostName && a.SubDomain == b.SubDomain && a.NodeName == b.NodeName &&
		a.Labels.Equal(b.Labels)
}

// VisibleTo reports whether proxies of a cluster may see the endpoint.
func (e *Endpoint) VisibleTo(cluster ClusterID) bool {
	a := e.Attributes()
	return !a.DiscoverableFromSameCluster || cluster == "" || a.ClusterID == "" || a.ClusterID == cluster
}

// CompareEndpoints is the order of endpoint lists. It compares by CompareEndpointKeys first, and
// then by all other fields, so that the order is the same in every replica.
func CompareEndpoints(e, f *Endpoint) int {
	if e == f {
		return 0
	}
	if c := CompareEndpointKeys(e, f); c != 0 {
		return c
	}
	a, b := e.Attributes(), f.Attributes()
	if c := cmp.Or(
		cmp.Compare(e.HealthStatus, f.HealthStatus),
		slices.Compare(e.Addresses, f.Addresses),
	); c != 0 || a == b {
		return c
	}
	return compareAttributes(a, b)
}

// CompareEndpointKeys orders endpoints by their key: by address, service port, port name, endpoint
// port, namespace, workload name and network. The key identifies an endpoint among the endpoints of
// one service and shard: two endpoints with the same key are two states of one endpoint, unless
// both are in one list. In a list that is sorted by CompareEndpoints, endpoints with equal keys are
// neighbors.
//
// Istio 1.30's key lacks the network and the port numbers, so endpoints that differ only in these
// hide one another.
func CompareEndpointKeys(e, f *Endpoint) int {
	if e == f {
		return 0
	}
	// Compare the address first and alone, because it nearly always decides.
	if c := strings.Compare(e.Address(), f.Address()); c != 0 {
		return c
	}
	if c := cmp.Compare(e.ServicePort, f.ServicePort); c != 0 {
		return c
	}
	if c := strings.Compare(e.ServicePortName, f.ServicePortName); c != 0 {
		return c
	}
	a, b := e.Attributes(), f.Attributes()
	return cmp.Or(
		cmp.Compare(e.EndpointPort, f.EndpointPort),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(e.WorkloadName, f.WorkloadName),
		strings.Compare(a.Network, b.Network),
	)
}

// compareAttributes compares the fields that CompareEndpoints has not compared. Labels come last,
// because they are expensive to compare and rarely decide.
func compareAttributes(a, b *EndpointAttributes) int {
	if c := cmp.Or(
		strings.Compare(a.ServiceAccount, b.ServiceAccount),
		strings.Compare(a.Locality, b.Locality),
		strings.Compare(string(a.ClusterID), string(b.ClusterID)),
		cmp.Compare(a.LbWeight, b.LbWeight),
		strings.Compare(a.TLSMode, b.TLSMode),
		strings.Compare(a.HostName, b.HostName),
		strings.Compare(a.SubDomain, b.SubDomain),
		strings.Compare(a.NodeName, b.NodeName),
		compareBools(a.SendUnhealthyEndpoints, b.SendUnhealthyEndpoints),
		compareBools(a.DiscoverableFromSameCluster, b.DiscoverableFromSameCluster),
	); c != 0 {
		return c
	}
	return compareLabels(a.Labels, b.Labels)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func compareLabels(a, b Labels) int {
	if a.Equal(b) {
		return 0
	}
	return strings.Compare(a.String(), b.String())
}

// sameAddresses compares the lists as multisets; they have one or two elements.
func sameAddresses(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	if len(a) != len(b) || len(a) == 1 {
		return false
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
