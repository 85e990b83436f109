// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
)

// The identities that a service gains from another cluster are not written into the
// slice of the registry that it is of, which may have room for them.
func TestAccountsOfARegistryAreNotChanged(t *testing.T) {
	c := aggregate.NewController()
	roomy := append(make([]string, 0, 4), "one")
	for i, accounts := range [][]string{roomy, {"two"}} {
		r := newRegistry(registry.Kubernetes, []registry.ClusterID{"c1", "c2"}[i])
		s := service("a", "ns")
		s.ServiceAccounts = accounts
		set(t, r, s)
		c.AddRegistry(given(r))
	}
	got := slices.Sorted(slices.Values(c.GetService("a").ServiceAccounts))
	if !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("accounts %v", got)
	}
	if room := roomy[:cap(roomy)]; !slices.Equal(room, []string{"one", "", "", ""}) {
		t.Errorf("the registry's slice is %q", room)
	}
}
