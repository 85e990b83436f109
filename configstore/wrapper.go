// SPDX-License-Identifier: Apache-2.0

package configstore

// As returns an ability of a store: the store itself as a T, or else the first
// that is one of those that it wraps. A wrapper names the store that it wraps by
// a method Unwrap() ConfigStore; the package comment says which wrappers do.
//
//	if w, ok := configstore.As[configstore.Watcher](cache); ok {
func As[T any](store ConfigStore) (ability T, ok bool) {
	for store != nil {
		if ability, ok = store.(T); ok {
			return ability, true
		}
		wrapper, wraps := store.(interface{ Unwrap() ConfigStore })
		if !wraps {
			break
		}
		store = wrapper.Unwrap()
	}
	return ability, false
}
