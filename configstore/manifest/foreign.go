// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// foreign reports whether an object was not meant for the schemas. An empty argument is unknown. An
// object was not meant for them if its group is neither that of a schema nor a sibling of one, as
// security.istio.io is of networking.istio.io.
func (in *input) foreign(apiVersion, kind string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	return !slices.ContainsFunc(in.schemas.All(), func(s configstore.Schema) bool {
		known := s.GroupVersionKind
		if apiVersion == "" {
			return known.Kind == kind
		}
		return known.Group == group || sameDomain(known.Group, group)
	})
}

// sameDomain reports whether two groups have the same part after the first dot, with a dot in it.
func sameDomain(a, b string) bool {
	_, a, _ = strings.Cut(a, ".")
	_, b, _ = strings.Cut(b, ".")
	return a == b && strings.Contains(a, ".")
}
