// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }
