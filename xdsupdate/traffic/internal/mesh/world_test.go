// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// TestHostsFor: whatever the services export and the mesh has as default, a namespace is shown every
// host that it may see, and none of which all services are exported elsewhere. A world after changes
// shows the same as a new one.
func TestHostsFor(t *testing.T) {
	namespaces := []string{"shop", "billing", "ops"}
	exports := [][]registry.Visibility{nil, {"*"}, {"."}, {"~"}, {"billing"}, {".", "ops"}, {"*", "~"}}
	for _, seed := range histories.Seeds(t, 300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		exportTo := [][]string{nil, {"*"}, {"."}, {"~"}, {"ops"}}[rng.IntN(5)]
		settings := &objects.Settings{Mesh: &meshconfig.MeshConfig{DefaultServiceExportTo: exportTo}}
		changed, current := &World{settings: settings}, make(map[registry.Hostname][]*registry.Service)
		for range 30 {
			name := registry.Hostname(fmt.Sprint("h", rng.IntN(6)))
			var list []*registry.Service
			for range rng.IntN(3) {
				list = append(list, &registry.Service{Hostname: name, Attributes: registry.ServiceAttributes{
					Name: "s", Namespace: namespaces[rng.IntN(3)], ExportTo: exports[rng.IntN(len(exports))],
				}})
			}
			slices.SortStableFunc(list, registry.ComparePrecedence)
			changed.set(name, current[name], list)
			current[name] = list
		}
		made := &World{settings: settings}
		made.fill(func(yield func(*registry.Service) bool) {
			for _, list := range current {
				for _, s := range list {
					yield(s)
				}
			}
		})
		for _, ns := range namespaces {
			got := maps.Collect(changed.HostsFor(ns))
			if again := maps.Collect(made.HostsFor(ns)); !maps.EqualFunc(got, again, slices.Equal[[]*registry.Service]) {
				t.Errorf("seed %d: %s is shown %v after changes, and %v at once", seed, ns, got, again)
			}
			for name, list := range current {
				visible := slices.ContainsFunc(list, func(s *registry.Service) bool { return settings.Visible(s, ns) })
				elsewhere := !slices.ContainsFunc(list, func(s *registry.Service) bool {
					return s.Attributes.Namespace == ns || settings.Visible(s, ns) || slices.Contains(s.Attributes.ExportTo, "~")
				})
				if _, shown := got[name]; visible && !shown || elsewhere && shown {
					t.Errorf("seed %d: %s of %v is shown to %s: %v", seed, name, list, ns, shown)
				}
			}
			for s := range changed.In(ns) {
				if s.Attributes.Namespace != ns || !slices.Contains(current[s.Hostname], s) {
					t.Errorf("seed %d: %v is in %s", seed, s, ns)
				}
			}
		}
	}
}
