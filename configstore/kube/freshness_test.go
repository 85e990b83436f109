// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/configstore"
)

// TestFreshness: a cache that has listed everything is fresh while nothing changes, and stale when Run has
// returned.
func TestFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := leading(t)
		synctest.Wait()
		if got := m.cache.SourceState().Freshness; got != configstore.Fresh {
			t.Errorf("the cache is %v", got)
		}
		m.leave()
		if got := m.cache.SourceState().Freshness; got != configstore.Stale {
			t.Errorf("after Run the cache is %v", got)
		}
	})
}
