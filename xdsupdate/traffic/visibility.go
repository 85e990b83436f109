// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// visibility says in which namespaces an object counts. It is immutable.
type visibility struct {
	public bool
	// namespaces are those that it is exported to by name; "." is resolved.
	namespaces []string
}

// newVisibility reads exportTo of an object in a namespace; defaults are the
// mesh's, for an object that has none.
func newVisibility(exportTo, defaults []string, namespace string) visibility {
	if len(exportTo) == 0 {
		exportTo = defaults
	}
	var v visibility
	for _, to := range exportTo {
		switch to {
		case "*":
			return visibility{public: true}
		case "~":
		case ".":
			v.namespaces = append(v.namespaces, namespace)
		default:
			v.namespaces = append(v.namespaces, to)
		}
	}
	return v
}

// private is the visibility of what counts in its own namespace only.
func private(namespace string) visibility { return visibility{namespaces: []string{namespace}} }

// in reports whether the object counts for proxies of a namespace.
func (v visibility) in(namespace string) bool {
	return v.public || slices.Contains(v.namespaces, namespace)
}

// equal reports whether both are the same set of namespaces.
func (v visibility) equal(w visibility) bool {
	if v.public || w.public {
		return v.public == w.public
	}
	return slices.Equal(v.sorted(), w.sorted())
}

// key is equal for equal sets of namespaces.
func (v visibility) key() string {
	if v.public {
		return "*"
	}
	return strings.Join(v.sorted(), ",")
}

func (v visibility) sorted() []string {
	names := slices.Clone(v.namespaces)
	slices.Sort(names)
	return slices.Compact(names)
}

// visible reports whether proxies of a namespace see a service: where it is
// exported to, or else where the mesh exports services to.
func (s *settings) visible(svc *registry.Service, namespace string) bool {
	if len(svc.Attributes.ExportTo) > 0 {
		return svc.VisibleIn(namespace)
	}
	return newVisibility(nil, s.mesh.GetDefaultServiceExportTo(), svc.Attributes.Namespace).in(namespace)
}
