// SPDX-License-Identifier: Apache-2.0

package configstore

import "iter"

// Select iterates over those objects of a List, made when the iteration starts,
// whose labels include all of selector; an empty selector selects everything.
func Select(reader Reader, kind GroupVersionKind, namespace string, selector map[string]string) iter.Seq[*Config] {
	return func(yield func(*Config) bool) {
		for _, c := range reader.List(kind, namespace) {
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
