// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(sharing{m}) }

// sharing ends the shared server before leaks are looked for.
type sharing struct{ m *testing.M }

// Run implements goleak.TestingM.
func (s sharing) Run() int {
	defer shared.close()
	return s.m.Run()
}
