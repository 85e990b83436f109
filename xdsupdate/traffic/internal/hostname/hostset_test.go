// SPDX-License-Identifier: Apache-2.0

package hostname

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry"
)

// TestHostSet: what a set finds is what looking at all hosts finds, whether they are few
// or many.
func TestHostSet(t *testing.T) {
	labels := []string{"a", "b", "ab", "ba", "com", "x-a"}
	for _, seed := range histories.Seeds(t, 300) {
		random := rand.New(rand.NewPCG(seed, 3))
		host := func() registry.Hostname {
			parts := make([]string, 1+random.IntN(3))
			for i := range parts {
				parts[i] = labels[random.IntN(len(labels))]
			}
			prefix := []string{"", "", "*.", "*", "*-"}[random.IntN(5)]
			if random.IntN(20) == 0 {
				return "*"
			}
			return registry.Hostname(prefix + strings.Join(parts, "."))
		}
		names := make([]registry.Hostname, 1+random.IntN(4*FewHosts.Get()))
		for i := range names {
			names[i] = host()
		}
		set := NewSet(names)
		if len(names) > FewHosts.Get() && set.positions == nil {
			t.Fatal("many hosts have no index")
		}
		for range 20 {
			h := host()
			var matching, below []int
			for i, n := range names {
				if h.Matches(n) {
					matching = append(matching, i)
				}
				if h.IsWildcard() && n.SubsetOf(h) {
					below = append(below, i)
				}
			}
			if diff := cmp.Diff(matching, set.Matching(h)); diff != "" {
				t.Fatalf("hosts %q that match %q (-want +got):\n%s", names, h, diff)
			}
			if got := slices.Sorted(set.Below(h)); !slices.Equal(got, below) {
				t.Fatalf("hosts %q below %q: %v, want %v", names, h, got, below)
			}
			if h.IsWildcard() && set.Covers(h) != (len(below) > 0) {
				t.Fatalf("hosts %q: %q covers one of them: %t", names, h, set.Covers(h))
			}
			if has := slices.ContainsFunc(names, h.SubsetOf); set.Has(h) != has {
				t.Fatalf("hosts %q: one of them covers %q: %t", names, h, set.Has(h))
			}
		}
	}
}

// TestLongHostName: a name that is longer than any in DNS is covered by the wildcards
// that DNS knows, and costs no more than these.
func TestLongHostName(t *testing.T) {
	n, last := 0, registry.Hostname("")
	for last = range Wildcards(registry.Hostname(strings.Repeat("a.", 40_000))) {
		n++
	}
	if n > maxHostName+1 || last != "*" {
		t.Errorf("%d wildcards, the last is %q", n, last)
	}
}

func TestMostSpecific(t *testing.T) {
	hosts := map[registry.Hostname]int{"a.b.c": 0, "*.b.c": 0, "*.c": 0, "*": 0, "*-x.b.c": 0}
	for name, want := range map[registry.Hostname]registry.Hostname{
		"a.b.c": "a.b.c", "z.b.c": "*.b.c", "z-x.b.c": "*-x.b.c", "y.c": "*.c", "q": "*", "*.b.c": "*.b.c", "*.z.b.c": "*.b.c",
	} {
		if got, ok := MostSpecific(hosts, name); !ok || got != want {
			t.Errorf("mostSpecific(%s) = %s, %t; want %s", name, got, ok, want)
		}
	}
	if got, ok := MostSpecific(map[registry.Hostname]int{"*.b.c": 0}, "b.c"); ok {
		t.Errorf("*.b.c must not cover b.c, got %s", got)
	}
}
