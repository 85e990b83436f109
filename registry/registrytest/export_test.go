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
func RunCheck(t testing.TB, name string, factory Factory) {
	t.Helper()
	for _, c := range checks() {
		if c.name == name {
			c.execute(t, factory)
			return
		}
	}
	t.Fatalf("no check %s", name)
}
