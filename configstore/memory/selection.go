// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// All iterates over what List returns at the time of the call.
func (s *Store) All(kind configstore.GroupVersionKind, namespace string) iter.Seq[*configstore.Config] {
	return slices.Values(s.List(kind, namespace))
}

// Select iterates over those objects of List, at the time of the call, whose labels
// include all of selector; an empty selector selects everything. It looks at the
// objects of the namespace alone.
func (s *Store) Select(kind configstore.GroupVersionKind, namespace string, selector map[string]string) iter.Seq[*configstore.Config] {
	return selected(s.List(kind, namespace), selector)
}

func selected(items []*configstore.Config, selector map[string]string) iter.Seq[*configstore.Config] {
	return func(yield func(*configstore.Config) bool) {
		for _, c := range items {
			if includes(c.Labels, selector) && !yield(c) {
				return
			}
		}
	}
}

func includes(labels, selector map[string]string) bool {
	for k, want := range selector {
		if got, ok := labels[k]; !ok || got != want {
			return false
		}
	}
	return true
}
