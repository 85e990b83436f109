// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"cmp"
	"strings"

	"github.com/pilotkit/pilotkit/internal/excerpt"
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

// Object returns "Kind namespace/name" for use in error messages, without the kind or the namespace
// if that is empty. Long parts are truncated, and unprintable ones are quoted.
func (k ConfigKey) Object() string { return excerpt.Object(k.Kind.Kind, k.Namespace, k.Name) }

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
