// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"slices"
	"strings"
)

// Labels are the labels of a service, an endpoint or a workload. Nil and empty
// mean the same.
type Labels map[string]string

// SubsetOf reports whether every label of l is in of. Empty labels are a subset
// of anything.
func (l Labels) SubsetOf(of Labels) bool {
	if len(l) > len(of) {
		return false
	}
	for k, v := range l {
		if got, ok := of[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Equal reports whether both hold the same labels.
func (l Labels) Equal(m Labels) bool { return maps.Equal(l, m) }

// String returns "key=value,key=value", sorted by key.
func (l Labels) String() string {
	var b strings.Builder
	for i, k := range slices.Sorted(maps.Keys(l)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k)
		b.WriteByte('=')
		b.WriteString(l[k])
	}
	return b.String()
}
