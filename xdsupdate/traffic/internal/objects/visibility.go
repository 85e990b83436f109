// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/keyset"
	"github.com/pilotkit/pilotkit/registry"
)

// Visibility is the set of namespaces that see an object. It is immutable.
type Visibility struct {
	Public bool
	// Namespaces are the names in exportTo, with "." resolved, sorted and without duplicates.
	Namespaces []string
}

// newVisibility parses the exportTo of an object in a namespace. The defaults of the mesh apply if
// it is empty.
func newVisibility(exportTo, defaults []string, namespace string) Visibility {
	if len(exportTo) == 0 {
		exportTo = defaults
	}
	return visibilityOf(exportTo, namespace)
}

func visibilityOf[S ~string](exportTo []S, namespace string) Visibility {
	var v Visibility
	for _, to := range exportTo {
		switch to {
		case "*":
			return Visibility{Public: true}
		case "~":
		case ".":
			v.Namespaces = append(v.Namespaces, namespace)
		default:
			v.Namespaces = append(v.Namespaces, string(to))
		}
	}
	slices.Sort(v.Namespaces)
	v.Namespaces = slices.Compact(v.Namespaces)
	return v
}

// Private returns the visibility in one namespace alone.
func Private(namespace string) Visibility { return Visibility{Namespaces: []string{namespace}} }

// In reports whether proxies of a namespace see the object.
func (v Visibility) In(namespace string) bool {
	return v.Public || slices.Contains(v.Namespaces, namespace)
}

// Or returns the namespaces that see one of two objects, or both.
func (v Visibility) Or(w Visibility) Visibility {
	if v.Public || w.Public {
		return Visibility{Public: true}
	}
	if len(w.Namespaces) == 0 || v.Equal(w) {
		return v
	}
	all := slices.Concat(v.Namespaces, w.Namespaces)
	slices.Sort(all)
	return Visibility{Namespaces: slices.Compact(all)}
}

// Equal reports whether the same namespaces see both objects.
func (v Visibility) Equal(w Visibility) bool {
	return v.Public == w.Public && slices.Equal(v.Namespaces, w.Namespaces)
}

// Visible reports whether proxies of a namespace see a service. Its exportTo decides, or else the
// default of the mesh.
func (s *Settings) Visible(svc *registry.Service, namespace string) bool {
	if len(svc.Attributes.ExportTo) > 0 {
		return svc.VisibleIn(namespace)
	}
	return s.Reach(svc).In(namespace)
}

// Reach returns an upper bound of the visibility of a service: Visible decides.
func (s *Settings) Reach(svc *registry.Service) Visibility {
	if len(svc.Attributes.ExportTo) > 0 {
		return visibilityOf(svc.Attributes.ExportTo, svc.Attributes.Namespace)
	}
	return visibilityOf(s.Mesh.GetDefaultServiceExportTo(), svc.Attributes.Namespace)
}

// Covers reports whether v includes every namespace of w.
func (v Visibility) Covers(w Visibility) bool {
	return v.Public || !w.Public && !slices.ContainsFunc(w.Namespaces, func(n string) bool { return !v.In(n) })
}

// String returns "all namespaces" or "namespaces a, b".
func (v Visibility) String() string {
	switch {
	case v.Public:
		return "all namespaces"
	case len(v.Namespaces) == 1:
		return "namespace " + v.Namespaces[0]
	default:
		return "namespaces " + strings.Join(v.Namespaces, ", ")
	}
}

// Settings are the settings that the meaning of objects depends on. They are immutable.
type Settings struct {
	// Mesh is the mesh configuration with all defaults.
	Mesh *meshconfig.MeshConfig
	// Domain is the DNS suffix of short names, in lower case.
	Domain string
	// Matches is the maximum number of matches of a VirtualService. 0 stands for no limit.
	Matches int
	// KeysFrom returns the current keys of a source.
	KeysFrom func(keyset.Source) keyset.Keys
}

// RootNamespace returns the namespace of objects for all namespaces.
func (s *Settings) RootNamespace() string { return s.Mesh.GetRootNamespace() }
