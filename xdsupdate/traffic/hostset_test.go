// SPDX-License-Identifier: Apache-2.0

package traffic

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
		names := make([]registry.Hostname, 1+random.IntN(4*fewHosts.Get()))
		for i := range names {
			names[i] = host()
		}
		set := newHostSet(names)
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
			if diff := cmp.Diff(matching, set.matching(h)); diff != "" {
				t.Fatalf("hosts %q that match %q (-want +got):\n%s", names, h, diff)
			}
			if got := slices.Sorted(set.below(h)); !slices.Equal(got, below) {
				t.Fatalf("hosts %q below %q: %v, want %v", names, h, got, below)
			}
			if h.IsWildcard() && set.covers(h) != (len(below) > 0) {
				t.Fatalf("hosts %q: %q covers one of them: %t", names, h, set.covers(h))
			}
		}
	}
}

// TestManyPorts: a service with many ports has each of them by its number, the first
// of several.
func TestManyPorts(t *testing.T) {
	for _, n := range []uint32{1, uint32(fewPorts), uint32(fewPorts) + 1, 200} {
		svc := &registry.Service{Hostname: "cart.example.com"}
		for i := range n {
			svc.Ports = append(svc.Ports, &registry.Port{Number: i + 1, Name: "first"}, nil, &registry.Port{Number: i + 1, Name: "second"})
		}
		s := newService([]*registry.Service{svc})
		odd := s.withPorts(func(number uint32) bool { return number%2 == 1 })
		if len(s.ports) != int(n) || len(odd.ports) != int(n+1)/2 {
			t.Errorf("%d ports, %d of them odd, want %d and %d", len(s.ports), len(odd.ports), n, (n+1)/2)
		}
		merged := odd.merge(s)
		for number := range n + 2 {
			want := number > 0 && number <= n
			for name, tc := range map[string]struct {
				of   *service
				want bool
			}{"all": {s, want}, "odd": {odd, want && number%2 == 1}, "merged": {merged, want}} {
				if p, ok := tc.of.port(number); ok != tc.want || ok && (p.Number != number || p.Name != "first") {
					t.Errorf("%d ports, %s: port %d is %v, %t", n, name, number, p.Port, ok)
				}
			}
		}
	}
}

// TestLongHostName: a name that is longer than any in DNS is covered by the wildcards
// that DNS knows, and costs no more than these.
func TestLongHostName(t *testing.T) {
	n, last := 0, registry.Hostname("")
	for last = range wildcardsOf(registry.Hostname(strings.Repeat("a.", 40_000))) {
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
		if got, ok := mostSpecific(hosts, name); !ok || got != want {
			t.Errorf("mostSpecific(%s) = %s, %t; want %s", name, got, ok, want)
		}
	}
	if got, ok := mostSpecific(map[registry.Hostname]int{"*.b.c": 0}, "b.c"); ok {
		t.Errorf("*.b.c must not cover b.c, got %s", got)
	}
}
