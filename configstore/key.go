// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"cmp"
	"strings"
)

// ConfigKey names one object. It is comparable.
type ConfigKey struct {
	Kind      GroupVersionKind
	Name      string
	Namespace string
}

// String returns "Kind/namespace/name", as Istio 1.30 writes keys of push
// requests.
func (k ConfigKey) String() string {
	return k.Kind.Kind + "/" + k.Namespace + "/" + k.Name
}

// Object returns "Kind namespace/name" for use in error messages, or "Kind name"
// if the namespace is empty.
func (k ConfigKey) Object() string {
	if k.Namespace == "" {
		return k.Kind.Kind + " " + k.Name
	}
	return k.Kind.Kind + " " + k.Namespace + "/" + k.Name
}

// Compare orders keys by group, kind, namespace, name and version.
func (k ConfigKey) Compare(l ConfigKey) int {
	return cmp.Or(
		strings.Compare(k.Kind.Group, l.Kind.Group),
		strings.Compare(k.Kind.Kind, l.Kind.Kind),
		strings.Compare(k.Namespace, l.Namespace),
		strings.Compare(k.Name, l.Name),
		strings.Compare(k.Kind.Version, l.Kind.Version),
	)
}
