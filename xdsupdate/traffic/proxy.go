// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"
	"unique"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
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
	targetPorts mesh.TargetPorts
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

// proxyConfigOf returns the encoded ProxyConfig of a node's metadata (PROXY_CONFIG), restricted to
// the fields that have an effect. It is empty if there is no valid ProxyConfig.
func proxyConfigOf(node *core.Node) string {
	given := node.GetMetadata().GetFields()["PROXY_CONFIG"].GetStructValue()
	if given == nil {
		return ""
	}
	text, err := given.MarshalJSON()
	if err != nil {
		return ""
	}
	var all meshconfig.ProxyConfig
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, &all); err != nil {
		return ""
	}
	used := &meshconfig.ProxyConfig{GatewayTopology: all.GetGatewayTopology()}
	if h := all.GetProxyHeaders(); h != nil {
		used.ProxyHeaders = &meshconfig.ProxyConfig_ProxyHeaders{
			AttemptCount: h.GetAttemptCount(), Server: h.GetServer(), RequestId: h.GetRequestId(),
			EnvoyDebugHeaders: h.GetEnvoyDebugHeaders(), XForwardedPort: h.GetXForwardedPort(),
		}
	}
	encoded, err := (proto.MarshalOptions{Deterministic: true}).Marshal(used)
	if err != nil {
		return ""
	}
	return proxyConfigMark + string(encoded)
}

// proxyConfigMark distinguishes an empty configuration from none.
const proxyConfigMark = "="

// parseProxyConfig is the inverse of proxyConfigOf. It returns nil for "".
func parseProxyConfig(encoded string) *meshconfig.ProxyConfig {
	if encoded == "" {
		return nil
	}
	var out meshconfig.ProxyConfig
	if proto.Unmarshal([]byte(encoded[len(proxyConfigMark):]), &out) != nil {
		return nil
	}
	return &out
}

// configOf returns the ProxyConfig of a proxy: its own as a whole, or else the mesh default.
func (s *settings) configOf(p *proxy) *meshconfig.ProxyConfig {
	if p.config != nil {
		return p.config
	}
	return s.Mesh.GetDefaultConfig()
}

// meshOf returns the mesh configuration for the connection managers of a proxy.
func (s *settings) meshOf(p *proxy) *meshconfig.MeshConfig {
	return &meshconfig.MeshConfig{DefaultConfig: s.configOf(p), PathNormalization: s.Mesh.GetPathNormalization()}
}

// clusterShare identifies the views that share a cluster or a load assignment: views with equal values
// receive the same resource. Irrelevant fields are zero.
type clusterShare struct {
	role objects.Role
	// service and rule belong to the name of the cluster. If rules are merged, rule is the first one.
	service *registry.Service
	rule    objects.ObjectName
	// policy is the first DestinationRule generated from BackendTLSPolicies.
	policy objects.ObjectName
	// certificate is the credential that the proxy presents to backends.
	certificate string
	location    unique.Handle[location]
}

// location contains the properties of a proxy that influence its clusters and load assignments.
type location struct {
	// addresses determine the IP family for DNS lookups.
	addresses string
	// The other fields influence the order and selection of endpoints. Labels are those of the group.
	cluster                   registry.ClusterID
	locality, network, labels string
}

// locate sets the locations of the proxy of a view.
func (p *proxy) locate(v ads.View) {
	g, _ := v.Policy.(group)
	addresses := strings.Join(p.addresses, ",")
	p.families = unique.Make(location{addresses: addresses})
	p.location = unique.Make(location{addresses, p.cluster, g.locality, g.network, g.labels})
}

// shareOf returns the identity of the views that share a resource. The place is that of a cluster or
// a load assignment.
func (x *provided) shareOf(v ads.View, p *proxy, typeURL, name string, at *clusterPlace) any {
	if ofCluster(typeURL) {
		return x.clusterShareOf(p, typeURL, at)
	}
	// Routes and listeners do not depend on the proxy's location, except for the inbound
	// listeners of a server.
	g, _ := v.Policy.(group)
	g.locality, g.network = "", ""
	if _, inbound, _ := xdsbuild.ParseInboundName(name); !inbound {
		g.server, g.node = "", false
	}
	v.Policy = g
	return v
}

func (x *provided) clusterShareOf(p *proxy, typeURL string, at *clusterPlace) clusterShare {
	s := clusterShare{role: p.Role}
	if at == nil {
		return s
	}
	s.service, s.location = at.port.Of, p.families
	if at.rule != nil {
		s.rule = at.rule.Of[0].ObjectName
	}
	if policies, _ := x.state.PoliciesOf(&p.Proxy, at.host, at.port.Of.Attributes.Namespace); len(policies) > 0 {
		if s.policy = policies[0].ObjectName; p.Role == objects.Router {
			s.certificate = x.state.routerOf(p).certificate
		}
	}
	if typeURL == envoy.LoadAssignmentType || s.service.Resolution.IsDNS() {
		s.location = p.location
	}
	return s
}
