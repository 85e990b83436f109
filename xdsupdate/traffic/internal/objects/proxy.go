// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"github.com/pilotkit/pilotkit/registry"
)

// Role is the way a client uses its resources.
type Role uint8

const (
	// SidecarProxy is an Envoy next to a workload. Only its outbound side is configured.
	SidecarProxy Role = iota
	// Router is an Envoy that serves as a gateway.
	Router
	// GRPCClient is a gRPC library that implements xDS. It may also be a server.
	GRPCClient
)

// Proxy contains the properties of a client by which objects select it. It is immutable.
type Proxy struct {
	Role      Role
	Namespace string
	// Labels include the topology labels: region, zone, subzone, network, cluster.
	Labels registry.Labels
	// Services are the hosts, in lower case, of the services that a router is an endpoint of.
	Services []string
}
