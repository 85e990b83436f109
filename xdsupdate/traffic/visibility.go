// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// visibility is the set of namespaces that see an object. It is immutable.
type visibility struct {
	public bool
	// namespaces are the names in exportTo, with "." resolved, sorted and without duplicates.
	namespaces []string
}

// newVisibility parses the exportTo of an object in a namespace. The defaults of the mesh apply if
// it is empty.
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
	slices.Sort(v.namespaces)
	v.namespaces = slices.Compact(v.namespaces)
	return v
}

// private returns the visibility in one namespace alone.
func private(namespace string) visibility { return visibility{namespaces: []string{namespace}} }

// in reports whether proxies of a namespace see the object.
func (v visibility) in(namespace string) bool {
	return v.public || slices.Contains(v.namespaces, namespace)
}

func (v visibility) equal(w visibility) bool {
	return v.public == w.public && slices.Equal(v.namespaces, w.namespaces)
}

// key is equal for equal sets of namespaces.
func (v visibility) key() string {
	if v.public {
		return "*"
	}
	return strings.Join(v.namespaces, ",")
}

// visible reports whether proxies of a namespace see a service. Its exportTo decides, or else the
// default of the mesh.
func (s *settings) visible(svc *registry.Service, namespace string) bool {
	if len(svc.Attributes.ExportTo) > 0 {
		return svc.VisibleIn(namespace)
	}
	return newVisibility(nil, s.mesh.GetDefaultServiceExportTo(), svc.Attributes.Namespace).in(namespace)
}
