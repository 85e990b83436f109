// SPDX-License-Identifier: Apache-2.0

package registrytest

import "testing"

// CheckNames returns the names of all checks.
func CheckNames() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// RunCheck runs one check.
func RunCheck(tb testing.TB, name string, factory Factory) {
	tb.Helper()
	for _, c := range checks() {
		if c.name == name {
			c.execute(tb, factory)
			return
		}
	}
	tb.Fatalf("no check %s", name)
}
