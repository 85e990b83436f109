// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// WithoutEffect returns the reason, as a phrase, why objects of one of Istio's kinds have no effect
// for any client. It returns "" if the kind has an effect, here or in a registry such as
// serviceentry's, and for kinds that are not Istio's.
func WithoutEffect(kind configstore.GroupVersionKind) string {
	switch kind {
	case istio.EnvoyFilter, istio.Telemetry, istio.WasmPlugin, istio.TrafficExtension, istio.ProxyConfig, istio.WorkloadGroup:
		return "nothing is made of this kind: only providers of a host act on it"
	default:
		return ""
	}
}

// withoutEffect returns the objects in a store whose kinds have no effect.
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

// ofKind returns the finding for an object whose kind has no effect.
func ofKind(key configstore.ConfigKey) Ineffective {
	return Ineffective{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Reason: WithoutEffect(key.Kind)}
}
