// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(sharing{m}) }

// sharing stops the shared server before the check for leaks.
type sharing struct{ m *testing.M }

// Run implements goleak.TestingM.
func (s sharing) Run() int {
	defer shared.close()
	return s.m.Run()
}
