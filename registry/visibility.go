// SPDX-License-Identifier: Apache-2.0

package registry

// Visibility is one value of exportTo: one of the constants, or the name of a
// namespace.
type Visibility string

// The visibilities that are not namespaces.
const (
	// VisibilityPrivate: the service's own namespace.
	VisibilityPrivate Visibility = "."
	// VisibilityPublic: every namespace.
	VisibilityPublic Visibility = "*"
	// VisibilityNone: visible nowhere.
	VisibilityNone Visibility = "~"
)

// VisibleIn reports whether a proxy in a namespace may see the service, by
// Istio 1.30's rules: exportTo, where empty means everywhere and "~" alone
// nowhere, narrowed by the mesh's Visibility.
func (s *Service) VisibleIn(namespace string) bool {
	exported := len(s.Attributes.ExportTo) == 0
	for _, v := range s.Attributes.ExportTo {
		switch v {
		case VisibilityPublic:
			exported = true
		case VisibilityPrivate:
			exported = exported || namespace == s.Attributes.Namespace
		case VisibilityNone:
		default:
			exported = exported || string(v) == namespace
		}
	}
	switch s.Attributes.Visibility {
	case VisibilityNone:
		return false
	case VisibilityPrivate:
		return exported && namespace == s.Attributes.Namespace
	default:
		return exported
	}
}
