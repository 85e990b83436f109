// SPDX-License-Identifier: Apache-2.0

package configstore

// GroupVersionKind identifies a kind of configuration, for example
// networking.istio.io/v1/ServiceEntry. It is comparable.
type GroupVersionKind struct {
	Group   string
	Version string
	Kind    string
}

// String returns "group/version/Kind"; the empty group prints as "core", as
// Istio 1.30 prints it.
func (k GroupVersionKind) String() string {
	group := k.Group
	if group == "" {
		group = "core"
	}
	return group + "/" + k.Version + "/" + k.Kind
}

// APIVersion returns the apiVersion of Kubernetes-style objects of this kind:
// "group/version", or the version alone if the group is empty.
func (k GroupVersionKind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}
