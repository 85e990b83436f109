// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// ConfigKey identifies a changed config or service. The key of a service has the kind ServiceEntry,
// its namespace, and its host name as the name, for all registries, as in Istio 1.30.
type ConfigKey = configstore.ConfigKey

// ServiceKey returns the key under which a service is named in push requests.
func ServiceKey(hostname registry.Hostname, namespace string) ConfigKey {
	return ConfigKey{Kind: serviceKind(), Name: string(hostname), Namespace: namespace}
}

// IsServiceKey reports whether the key names a service.
func IsServiceKey(key ConfigKey) bool { return key.Kind == serviceKind() }

// KeySet returns the keys in the form of PushRequest.ConfigsUpdated; nil, which
// means everything, if there are none.
func KeySet(keys ...ConfigKey) map[ConfigKey]struct{} {
	if len(keys) == 0 {
		return nil
	}
	set := make(map[ConfigKey]struct{}, len(keys))
	for _, key := range keys {
		set[key] = struct{}{}
	}
	return set
}

// serviceKind is the kind ServiceEntry of configstore/istio, which this package
// does without.
func serviceKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "ServiceEntry"}
}
