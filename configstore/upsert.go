// SPDX-License-Identifier: Apache-2.0

package configstore

import "errors"

// Upsert stores an object whether or not it exists: it is an Update if an object of that key exists
// or if c has a ResourceVersion, and a Create otherwise. An object that equals the stored one
// causes no event. It returns the object's revision. The errors are those of Update and Create.
func Upsert(store ConfigStore, c Config) (revision string, err error) {
	if c.ResourceVersion != "" {
		return store.Update(c)
	}
	for exists := store.Get(c.GroupVersionKind, c.Name, c.Namespace) != nil; ; exists = !exists {
		// If the other one is due meanwhile, the next round is that.
		if exists {
			if revision, err = store.Update(c); !errors.Is(err, ErrNotFound) {
				return revision, err
			}
		} else if revision, err = store.Create(c); !errors.Is(err, ErrAlreadyExists) {
			return revision, err
		}
	}
}
