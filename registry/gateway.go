// SPDX-License-Identifier: Apache-2.0

package registry

// NetworkGateway is an address that forwards connections to the endpoints of another network. It is
// comparable.
type NetworkGateway struct {
	Network string
	Cluster ClusterID
	// Addr is an IP address or a host name.
	Addr string
	// Port accepts mTLS connections; 0 if the gateway has no such port.
	Port uint32
	// HBONEPort accepts HBONE tunnels; 0 if the gateway has no such port.
	HBONEPort uint32
	// ServiceAccount is the gateway's identity; may be empty.
	ServiceAccount string
}
