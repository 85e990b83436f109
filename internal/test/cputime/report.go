// SPDX-License-Identifier: Apache-2.0

package cputime

import "testing"

// Report reports, when the returned function is called, the CPU time of the process for each of n
// units of work in an operation.
func Report(b *testing.B, unit string, n int) (done func()) {
	b.Helper()
	before := Used()
	return func() { b.ReportMetric(float64(Used()-before)/float64(b.N*n), "cpu-ns/"+unit) }
}
