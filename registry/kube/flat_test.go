// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// The cost of a change does not depend on the size of the cluster: it makes as many allocations in
// a large cluster as in a small one, and as many for one endpoint of many as for one of few.
func TestChangesAreFlat(t *testing.T) {
	cluster := func(services int) *kube.Controller {
		k := kube.New(nil, xdsupdate.Discard{}, kube.Options{ClusterID: "c"})
		fillCluster(k, services)
		k.Drain()
		return k
	}
	wide := kube.New(nil, xdsupdate.Discard{}, kube.Options{ClusterID: "c"})
	fillWide(wide, 10)
	small, large := cluster(20), cluster(500)
	for _, test := range []struct {
		name         string
		small, large func() float64
		limit        float64
	}{
		{"one endpoint of a slice", sliceChanges(small, 7), sliceChanges(large, 7), 30},
		{"a label of a pod", podChanges(small, 7), podChanges(large, 7), 40},
		{"one endpoint of a slice of a hundred", sliceChanges(small, 7), wideChanges(wide), 30},
	} {
		// The tree of a map may have one more level, and the change copies one node of each level.
		few, many := test.small(), test.large()
		if many > few+4 || many > test.limit {
			t.Errorf("%s: %.0f allocations in the small case, %.0f in the large one, want at most %.0f", test.name, few, many, test.limit)
		}
	}
}

// alternate returns the allocations of putting two states of an object in turn.
func alternate(k *kube.Controller, states ...any) func() float64 {
	i := 0
	return func() float64 {
		return testing.AllocsPerRun(100, func() {
			k.Put(states[i%len(states)])
			k.Drain()
			i++
		})
	}
}

func sliceChanges(k *kube.Controller, service int) func() float64 {
	return alternate(k, benchSlice(service, 3), benchSlice(service, -1))
}

func podChanges(k *kube.Controller, service int) func() float64 {
	return alternate(k, benchPod(service, 3, "v2"), benchPod(service, 3, "v1"))
}

func wideChanges(k *kube.Controller) func() float64 {
	return alternate(k, wideSlice(3, 7), wideSlice(3, -1))
}
