// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ads_test

import (
	"syscall"
	"testing"
)

// reportCPU reports the CPU time of the process for each of n units of work in an operation,
// because it is comparable on a machine that has other work to do.
func reportCPU(b *testing.B, unit string, n int) (done func()) {
	b.Helper()
	before := cpuTime(b)
	return func() { b.ReportMetric((cpuTime(b)-before)/float64(b.N*n), "cpu-ns/"+unit) }
}

func cpuTime(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano() + usage.Stime.Nano())
}
