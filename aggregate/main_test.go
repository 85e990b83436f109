// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// given returns a function for AddRegistry that returns a registry which has its
// updater already.
func given(r registry.Instance) func(xdsupdate.XDSUpdater) registry.Instance {
	return func(xdsupdate.XDSUpdater) registry.Instance { return r }
}
