// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry"
)

// TestFirstMerge compares the services of registries that were all added before the
// first read, which are merged at once, with those of a Controller that was read after
// each of them.
func TestFirstMerge(t *testing.T) {
	t.Parallel()
	for _, seed := range histories.Seeds(t, 200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		atOnce, oneByOne := aggregate.NewController(), aggregate.NewController()
		for n := range 1 + rng.IntN(5) {
			cluster := registry.ClusterID(fmt.Sprint("c", n))
			r := newRegistry([]registry.ProviderID{registry.Kubernetes, registry.External}[rng.IntN(2)], cluster)
			for range rng.IntN(40) {
				s := service(fmt.Sprint("h", rng.IntN(20)), fmt.Sprint("ns", rng.IntN(3)), vip(cluster, "10.0.0.1"), accounts(fmt.Sprint("sa", n/2)))
				s.CreationTime = time.Unix(int64(rng.IntN(5)), 0) // precedence is not the order of lists
				if err := r.SetService(s); err != nil {
					t.Fatal(err)
				}
			}
			atOnce.AddRegistry(given(r))
			oneByOne.AddRegistry(given(r))
			oneByOne.Services()
		}
		if diff := cmp.Diff(oneByOne.Services(), atOnce.Services()); diff != "" {
			t.Errorf("seed %d: services of the first read (-one by one +at once):\n%s", seed, diff)
		}
		for n := range 20 {
			host := registry.Hostname(fmt.Sprint("h", n))
			if diff := cmp.Diff(oneByOne.ServiceSnapshot().Host(host), atOnce.ServiceSnapshot().Host(host)); diff != "" {
				t.Errorf("seed %d: services of %s (-one by one +at once):\n%s", seed, host, diff)
			}
		}
	}
}
