// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

// TestManyPorts: a service with many ports has each of them by its number, the first
// of several.
func TestManyPorts(t *testing.T) {
	for _, n := range []uint32{1, uint32(fewPorts), uint32(fewPorts) + 1, 200} {
		svc := &registry.Service{Hostname: "cart.example.com"}
		for i := range n {
			svc.Ports = append(svc.Ports, &registry.Port{Number: i + 1, Name: "first"}, nil, &registry.Port{Number: i + 1, Name: "second"})
		}
		s := NewService([]*registry.Service{svc})
		odd := s.withPorts(func(number uint32) bool { return number%2 == 1 })
		if len(s.Ports) != int(n) || len(odd.Ports) != int(n+1)/2 {
			t.Errorf("%d ports, %d of them odd, want %d and %d", len(s.Ports), len(odd.Ports), n, (n+1)/2)
		}
		merged := odd.merge(s)
		for number := range n + 2 {
			want := number > 0 && number <= n
			for name, tc := range map[string]struct {
				of   *Service
				want bool
			}{"all": {s, want}, "odd": {odd, want && number%2 == 1}, "merged": {merged, want}} {
				if p, ok := tc.of.Port(number); ok != tc.want || ok && (p.Number != number || p.Name != "first") {
					t.Errorf("%d ports, %s: port %d is %v, %t", n, name, number, p.Port, ok)
				}
			}
		}
	}
}
