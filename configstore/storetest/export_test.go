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
func RunCheck(tb testing.TB, name string, factory Factory) {
	tb.Helper()
	for _, c := range concat(storeChecks(), cacheChecks()) {
		if c.name == name {
			c.execute(tb, factory)
			return
		}
	}
	tb.Fatalf("no check is named %q", name)
}
