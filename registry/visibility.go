// SPDX-License-Identifier: Apache-2.0

package registry

// Visibility is one value of exportTo: one of the constants, or the name of a
// namespace.
type Visibility string

// The visibilities that are not namespaces.
const (
	// VisibilityPrivate is the service's own namespace.
	VisibilityPrivate Visibility = "."
	// VisibilityPublic is every namespace.
	VisibilityPublic Visibility = "*"
	// VisibilityNone is no namespace.
	VisibilityNone Visibility = "~"
)

// VisibleIn reports whether a proxy in a namespace may see the service, by the rules of Istio 1.30:
// an empty exportTo, or one with "*", exports to every namespace; otherwise one with "~" exports to
// none. The mesh's Visibility restricts the result.
func (s *Service) VisibleIn(namespace string) bool {
	switch s.Attributes.Visibility {
	case VisibilityNone:
		return false
	case VisibilityPrivate:
		return namespace == s.Attributes.Namespace && s.exportedTo(namespace)
	default:
		return s.exportedTo(namespace)
	}
}

func (s *Service) exportedTo(namespace string) bool {
	exported, none := len(s.Attributes.ExportTo) == 0, false
	for _, v := range s.Attributes.ExportTo {
		switch v {
		case VisibilityPublic:
			return true
		case VisibilityPrivate:
			exported = exported || namespace == s.Attributes.Namespace
		case VisibilityNone:
			none = true
		default:
			exported = exported || string(v) == namespace
		}
	}
	return exported && !none
}
