// SPDX-License-Identifier: Apache-2.0

package registry

// Proxy is the client of a query: an Envoy, or an application that speaks xDS itself.
type Proxy struct {
	// ID is the client's name, for example its xDS node ID. The ID of a proxy in a Kubernetes pod
	// is "pod.namespace".
	ID string
	// Namespace is the namespace of the proxy; empty if unknown.
	Namespace string
	// Identity is the authenticated identity of the client, such as a SPIFFE ID; empty if the
	// client is not authenticated.
	Identity string
	// ClusterID is the cluster of the proxy; empty if unknown.
	ClusterID ClusterID
	// IPAddresses are the proxy's own addresses, the primary one first.
	IPAddresses []string
	Labels      Labels
	// Locality is "region/zone/subzone".
	Locality string
	Network  string
	// DNSCapture reports whether the proxy answers the application's DNS queries, DNSAutoAllocate
	// whether it knows automatically allocated addresses.
	DNSCapture      bool
	DNSAutoAllocate bool
	// NodeName is the node of the proxy, as the proxy claims; empty if unknown.
	NodeName string
	// WorkloadPorts are the ports of the proxy's workload, as the proxy claims. They are used only
	// while a registry does not know the workload itself.
	WorkloadPorts []WorkloadPort
}

// WorkloadPort is a port that a workload declares, such as a container port.
type WorkloadPort struct {
	Name   string
	Number uint32
	// Protocol is the transport protocol: "TCP", "UDP" or "SCTP".
	Protocol string
}
