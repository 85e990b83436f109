// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// role says what a client does with what it is sent.
type role uint8

const (
	// sidecarProxy is an Envoy beside a workload, whose outbound side is configured.
	sidecarProxy role = iota
	// router is an Envoy that serves as a gateway.
	router
	// grpcClient is a gRPC library that speaks xDS itself.
	grpcClient
)

// proxy is what makes a difference in a client. It is immutable.
type proxy struct {
	role      role
	namespace string
	cluster   registry.ClusterID
	// labels include those of its topology: region, zone, subzone, network, cluster.
	labels registry.Labels
	// locality is "region/zone/subzone".
	locality string
	network  string
	// addresses are the unspecified address of each family that it has addresses of.
	addresses []string
	// allocated: it knows automatically allocated addresses of services.
	allocated bool
	// config is how it says that it is configured; nil: as the mesh says.
	config *meshconfig.ProxyConfig
	// targetPorts are, for a router, the ports on which it listens for the ports of
	// the services that it is an endpoint of.
	targetPorts targetPorts
	// server are, for a gRPC client at whose addresses there are workloads of its namespace, these
	// addresses in their canonical form: it may be a server, too.
	server []string
	// node: the client is grpc-js, whose servers know less of connections. It is set for servers only.
	node bool
	// services are, for a router, the hosts in lower case of the services that it is an endpoint of.
	services []string
	// leaving is set while a resource is made for a client that refuses it.
	leaving *leaving
}

// client returns the kind of client that the proxy is.
func (p *proxy) client() envoy.Client {
	if p.role == grpcClient {
		return envoy.ForGRPC
	}
	return envoy.ForEnvoy
}
