// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// knownGroups says which kinds look as if they were meant for the schemas.
type knownGroups struct {
	// groups are the groups of the schemas, domains their parts after the first dot if these have a
	// dot themselves, and kinds the names of the kinds.
	groups, domains, kinds map[string]bool
}

func newKnownGroups(schemas configstore.Schemas) knownGroups {
	k := knownGroups{groups: map[string]bool{}, domains: map[string]bool{}, kinds: map[string]bool{}}
	for _, s := range schemas.All() {
		k.groups[s.GroupVersionKind.Group] = true
		k.kinds[s.GroupVersionKind.Kind] = true
		if _, domain, _ := strings.Cut(s.GroupVersionKind.Group, "."); strings.Contains(domain, ".") {
			k.domains[domain] = true
		}
	}
	return k
}

// foreign reports whether an object was not meant for the schemas. An empty argument is unknown. An
// object was not meant for them if its group is neither that of a schema nor a sibling of one, as
// security.istio.io is of networking.istio.io.
func (k knownGroups) foreign(apiVersion, kind string) bool {
	if apiVersion == "" {
		return !k.kinds[kind]
	}
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	_, domain, _ := strings.Cut(group, ".")
	return !k.groups[group] && !k.domains[domain]
}

// foreign is that of the input's schemas, which few inputs need.
func (in *input) foreign(apiVersion, kind string) bool {
	if in.known.groups == nil {
		in.known = newKnownGroups(in.schemas)
	}
	return in.known.foreign(apiVersion, kind)
}
