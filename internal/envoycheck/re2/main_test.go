// SPDX-License-Identifier: Apache-2.0

package re2_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }
