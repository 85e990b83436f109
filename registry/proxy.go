// SPDX-License-Identifier: Apache-2.0

package registry

// Proxy is the client that a question is asked for: an Envoy, or an application
// that speaks xDS itself.
type Proxy struct {
	// ID is the client's name, for example its xDS node ID. That of a proxy in a
	// pod of Kubernetes is "pod.namespace".
	ID string
	// Namespace is where the proxy runs; empty if unknown.
	Namespace string
	// Identity is who the client is by what somebody has verified, such as a SPIFFE ID; empty: nobody has.
	Identity string
	// ClusterID is the cluster that it runs in; empty if unknown.
	ClusterID ClusterID
	// IPAddresses are its own addresses, the primary one first.
	IPAddresses []string
	Labels      Labels
	// Locality is "region/zone/subzone".
	Locality string
	Network  string
	// DNSCapture and DNSAutoAllocate: the proxy answers the application's DNS
	// queries, and knows automatically allocated addresses.
	DNSCapture      bool
	DNSAutoAllocate bool
	// NodeName is the node that the proxy says it runs on; empty if unknown.
	NodeName string
	// WorkloadPorts are the ports that the proxy says its workload declares. They
	// count as long as a registry does not know the workload itself.
	WorkloadPorts []WorkloadPort
}

// WorkloadPort is a port that a workload declares, such as a container port.
type WorkloadPort struct {
	Name   string
	Number uint32
	// Protocol is the transport protocol: "TCP", "UDP" or "SCTP".
	Protocol string
}
