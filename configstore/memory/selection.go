// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"iter"

	"github.com/pilotkit/pilotkit/configstore"
)

// All yields what List returns now, when the loop begins.
func (s *Store) All(kind configstore.GroupVersionKind, namespace string) iter.Seq[*configstore.Config] {
	return values(s.List, kind, namespace)
}

// Select yields those of All whose labels include all of selector; an empty
// selector selects everything. It looks at the objects of the namespace alone.
func (s *Store) Select(kind configstore.GroupVersionKind, namespace string, selector map[string]string) iter.Seq[*configstore.Config] {
	return selected(s.All(kind, namespace), selector)
}

func values(
	list func(configstore.GroupVersionKind, string) []*configstore.Config,
	kind configstore.GroupVersionKind, namespace string,
) iter.Seq[*configstore.Config] {
	return func(yield func(*configstore.Config) bool) {
		for _, c := range list(kind, namespace) {
			if !yield(c) {
				return
			}
		}
	}
}

func selected(all iter.Seq[*configstore.Config], selector map[string]string) iter.Seq[*configstore.Config] {
	return func(yield func(*configstore.Config) bool) {
		for c := range all {
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
