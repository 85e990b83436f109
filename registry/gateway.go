// SPDX-License-Identifier: Apache-2.0

package registry

// NetworkGateway is an address through which endpoints of another network are
// reached. It is comparable.
type NetworkGateway struct {
	Network string
	Cluster ClusterID
	// Addr is an IP address or a host name.
	Addr string
	// Port takes mTLS connections; 0 if it has none.
	Port uint32
	// HBONEPort takes HBONE tunnels; 0 if it has none.
	HBONEPort uint32
	// ServiceAccount is the gateway's identity; may be empty.
	ServiceAccount string
}
