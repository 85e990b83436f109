// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
)

// proxyConfigOf returns what a node says in its metadata of how it is configured
// (PROXY_CONFIG), as far as it makes a difference, encoded; "": it says nothing, or
// what cannot be understood.
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
	if a := all.GetProxyHeaders().GetAttemptCount(); a != nil {
		used.ProxyHeaders = &meshconfig.ProxyConfig_ProxyHeaders{AttemptCount: a}
	}
	encoded, err := (proto.MarshalOptions{Deterministic: true}).Marshal(used)
	if err != nil {
		return ""
	}
	return proxyConfigMark + string(encoded)
}

// proxyConfigMark tells an empty configuration from none.
const proxyConfigMark = "="

// parseProxyConfig is the inverse of proxyConfigOf; nil for "".
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

// configOf returns how a proxy is configured: as it says, or else, as a whole, as the
// mesh does.
func (s *settings) configOf(p *proxy) *meshconfig.ProxyConfig {
	if p.config != nil {
		return p.config
	}
	return s.mesh.GetDefaultConfig()
}

// meshOf returns the mesh as it is for the connection managers of a proxy.
func (s *settings) meshOf(p *proxy) *meshconfig.MeshConfig {
	return &meshconfig.MeshConfig{DefaultConfig: s.configOf(p), PathNormalization: s.mesh.GetPathNormalization()}
}
