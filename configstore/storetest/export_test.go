// SPDX-License-Identifier: Apache-2.0

package storetest

import "testing"

// CheckNames returns the names of all checks.
func CheckNames() (store, cache []string) {
	for _, c := range storeChecks() {
		store = append(store, c.name)
	}
	for _, c := range cacheChecks() {
		cache = append(cache, c.name)
	}
	return store, cache
}

// RunCheck runs one check; t may be a stand-in that keeps the failures.
func RunCheck(t testing.TB, name string, factory Factory) {
	t.Helper()
	for _, c := range concat(storeChecks(), cacheChecks()) {
		if c.name == name {
			c.execute(t, factory)
			return
		}
	}
	t.Fatalf("no check is named %q", name)
}
