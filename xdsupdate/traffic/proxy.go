// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"unique"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// proxy contains the properties of a client that influence its resources. It is immutable.
type proxy struct {
	objects.Proxy
	cluster registry.ClusterID
	// locality is "region/zone/subzone".
	locality string
	network  string
	// addresses are the unspecified addresses of the proxy's IP families.
	addresses []string
	// allocated is set if the proxy can resolve automatically allocated service addresses.
	allocated bool
	// config is the proxy's own ProxyConfig. It is nil if the mesh configuration applies.
	config *meshconfig.ProxyConfig
	// targetPorts are a router's listening ports for the ports of the services that it is an
	// endpoint of.
	targetPorts targetPorts
	// server lists the canonical addresses of a gRPC client if its namespace has workloads at some
	// of them, because the client may then be a server, too.
	server []string
	// node is set if a gRPC server uses grpc-js, whose servers know fewer properties of
	// connections.
	node bool
	// registered is the result of registryProxy for proxies of views; nil: not computed.
	registered *registry.Proxy
	// location and families are set for proxies of views, see clusterShare.
	location, families unique.Handle[location]
	// leaving is set while a resource is built for a client that rejects it.
	leaving *leaving
}

// client returns the proxy's kind of client.
func (p *proxy) client() envoy.Client {
	if p.Role == objects.GRPCClient {
		return envoy.ForGRPC
	}
	return envoy.ForEnvoy
}
