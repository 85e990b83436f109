// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
)

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
	if a := all.GetProxyHeaders().GetAttemptCount(); a != nil {
		used.ProxyHeaders = &meshconfig.ProxyConfig_ProxyHeaders{AttemptCount: a}
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
