// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/contract"
)

// ExpectTeeth demands that every check finds the faults that teeth has by its
// name.
func ExpectTeeth(t *testing.T, teeth map[string][]string, factory func(fault string) Factory) {
	t.Helper()
	contract.ExpectTeeth(t, checks(), teeth,
		func(fault string) func(*contract.T) *suite { return setUp(factory(fault)) })
}
