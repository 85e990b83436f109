// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestPushesOfEverythingUnderChurn: registries change endpoints all the time, and
// pushes of everything come through.
func TestPushesOfEverythingUnderChurn(t *testing.T) {
	n := tier.Share(20_000)
	m := newMesh(t, n, 4)
	stop := m.churn()
	defer stop()
	late := time.After(time.Minute)
	for i := range 10 {
		m.askForEverything()
		select {
		case <-m.everything:
		case <-late:
			t.Fatalf("%d of 10 pushes of everything in a minute", i)
		}
	}
}
