// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// WithoutEffect returns why objects of one of Istio's kinds change nothing for any client, as a phrase; "" if they have an
// effect, here or in a registry such as serviceentry's, or if the kind is not Istio's.
func WithoutEffect(kind configstore.GroupVersionKind) string {
	switch kind {
	case istio.EnvoyFilter, istio.Telemetry, istio.WasmPlugin, istio.TrafficExtension, istio.ProxyConfig, istio.WorkloadGroup:
		return "nothing is made of this kind: only generators of a host act on it"
	default:
		return ""
	}
}

// withoutEffect returns the objects of a store whose kinds have no effect.
func withoutEffect(configs configstore.ConfigStore) (out []Ineffective) {
	for _, s := range configs.Schemas().All() {
		if WithoutEffect(s.GroupVersionKind) == "" {
			continue
		}
		for _, c := range configs.List(s.GroupVersionKind, configstore.NamespaceAll) {
			out = append(out, ofKind(c.Key()))
		}
	}
	return out
}

// ofKind returns the finding about an object whose kind has no effect.
func ofKind(key configstore.ConfigKey) Ineffective {
	return Ineffective{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Reason: WithoutEffect(key.Kind)}
}
