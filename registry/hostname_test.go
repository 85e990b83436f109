// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

func TestHostnameMatching(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b registry.Hostname
		// subset: b covers a; matches: they overlap.
		subset, matches bool
	}{
		{"a.com", "a.com", true, true},
		{"a.com", "b.com", false, false},
		{"a.com", "*", true, true},
		{"a.com", "*.com", true, true},
		{"com", "*.com", false, false},
		{"foo.com", "*.foo.com", false, false},
		{"x.y.foo.com", "*.foo.com", true, true},
		{"xfoo.com", "*.foo.com", false, false},
		{"*.foo.com", "x.foo.com", false, true},
		{"*.foo.com", "*.com", true, true},
		{"*.com", "*.foo.com", false, true},
		{"*.foo.com", "*.bar.com", false, false},
		{"*", "a.com", false, true},
		{"*", "*", true, true},
		{"*.foo.com", "*", true, true},
		{"*foo.com", "*.foo.com", false, true},
		{"*.foo.com", "*foo.com", true, true},
		{"", "*", true, true},
		{"", "a.com", false, false},
	} {
		if got := test.a.SubsetOf(test.b); got != test.subset {
			t.Errorf("%q.SubsetOf(%q) = %t, want %t", test.a, test.b, got, test.subset)
		}
		if got := test.a.Matches(test.b); got != test.matches {
			t.Errorf("%q.Matches(%q) = %t, want %t", test.a, test.b, got, test.matches)
		}
		if got := test.b.Matches(test.a); got != test.matches {
			t.Errorf("%q.Matches(%q) = %t, want %t", test.b, test.a, got, test.matches)
		}
	}
}

// FuzzHostname checks the laws that the answers have to keep.
func FuzzHostname(f *testing.F) {
	f.Add("a.com", "*.com", "*")
	f.Add("*.a.com", "*a.com", "b.a.com")
	f.Fuzz(func(t *testing.T, x, y, z string) {
		a, b, c := registry.Hostname(x), registry.Hostname(y), registry.Hostname(z)
		if !a.SubsetOf(a) || !a.Matches(a) {
			t.Errorf("%q is not what it is", a)
		}
		if a.Matches(b) != b.Matches(a) {
			t.Errorf("%q and %q do not match both ways", a, b)
		}
		if a.SubsetOf(b) && b.SubsetOf(c) && !a.SubsetOf(c) {
			t.Errorf("%q, %q, %q: SubsetOf is not transitive", a, b, c)
		}
		if a.SubsetOf(b) && !strings.HasSuffix(x, strings.TrimPrefix(y, "*")) {
			t.Errorf("%q is covered by %q without its suffix", a, b)
		}
	})
}
