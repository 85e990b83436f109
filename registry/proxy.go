// SPDX-License-Identifier: Apache-2.0

package registry

// Proxy is the client that a question is asked for: an Envoy, or an application
// that speaks xDS itself.
type Proxy struct {
	// ID is the client's name, for example its xDS node ID.
	ID string
	// Namespace is where the proxy runs; empty if unknown.
	Namespace string
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
}
