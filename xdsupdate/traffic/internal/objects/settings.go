// SPDX-License-Identifier: Apache-2.0

package objects

import (
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/keyset"
)

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
