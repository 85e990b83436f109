// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPrerequisites is skipped where there is no Envoy; ./test.sh shows what it says.
func TestPrerequisites(t *testing.T) { Require(t) }
