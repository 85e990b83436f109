// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"testing"

	"go.uber.org/atomic"
)

// Count counts the calls that scenarios compare. It may be used from any goroutine.
type Count struct{ scenarios, calls atomic.Int64 }

// leastCalls is the least number of calls that a scenario compares on average, and fewScenarios a number
// of them that says nothing about the average.
const leastCalls, fewScenarios = 20, 20

// Add adds the calls of a scenario.
func (c *Count) Add(calls int) {
	c.scenarios.Add(1)
	c.calls.Add(int64(calls))
}

// Check fails a test whose scenarios compare few calls. The cleanup of the test calls it, because
// scenarios run in parallel.
func (c *Count) Check(t *testing.T) {
	t.Helper()
	if n, calls := c.scenarios.Load(), c.calls.Load(); n > fewScenarios && calls < leastCalls*n {
		t.Errorf("%d scenarios compare %d calls through a router, at least %d are expected", n, calls, leastCalls*n)
	}
}
