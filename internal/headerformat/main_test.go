// SPDX-License-Identifier: Apache-2.0

package headerformat_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPrerequisites is skipped where there is no Envoy; ./test.sh shows what it says.
func TestPrerequisites(t *testing.T) { envoyproxy.Require(t) }
