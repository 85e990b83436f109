// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// Validate checks the invariants of the package comment, for tests. The store's
// lock must be held, with no commit in progress.
func (ls *Lists) Validate() error {
	all := sorted(slices.Collect(ls.objects.Each))
	if err := ls.all.validate(all); err != nil {
		return fmt.Errorf("list of all: %w", err)
	}
	namespaces := map[string]bool{}
	for _, c := range all {
		namespaces[c.Namespace] = true
	}
	if n := ls.namespaces.Len(); n != len(namespaces) {
		return fmt.Errorf("%d namespaces have lists, %d have objects", n, len(namespaces))
	}
	for ns := range namespaces {
		l, _ := ls.namespaces.Get(ns)
		if l == nil {
			return fmt.Errorf("namespace %q has objects and no list", ns)
		}
		if err := l.validate(InNamespace(all, ns)); err != nil {
			return fmt.Errorf("list of namespace %q: %w", ns, err)
		}
	}
	return nil
}

// validate checks a list. want are the objects that exist, sorted.
func (l *list) validate(want []*configstore.Config) error {
	if l.objects != len(want) {
		return fmt.Errorf("%d objects are counted, %d exist", l.objects, len(want))
	}
	if v := l.fresh.Load(); v != nil && (l.state != kept || len(l.pending) > 0 || v.Revision != l.revision || !slices.Equal(v.Items, want)) {
		return fmt.Errorf("fresh at revision %d: state %d, %d pending, last change %d, %d items of %d",
			v.Revision, l.state, len(l.pending), l.revision, len(v.Items), len(want))
	}
	if l.state != kept {
		return nil
	}
	// The order of pending is unspecified, so compare sets of keys.
	pending := map[Key]bool{}
	for _, k := range l.pending {
		pending[k] = true
	}
	made := map[*configstore.Config]bool{}
	for _, c := range l.made {
		made[c] = true
	}
	for _, c := range want {
		if !made[c] && !pending[KeyOf(c)] {
			return fmt.Errorf("%s is missing and not pending", c.Key().Object())
		}
		delete(made, c)
	}
	for c := range made {
		if !pending[KeyOf(c)] {
			return fmt.Errorf("%s is listed, does not exist, and is not pending", c.Key().Object())
		}
	}
	return nil
}
