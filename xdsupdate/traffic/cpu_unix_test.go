// SPDX-License-Identifier: Apache-2.0

//go:build unix

package traffic_test

import (
	"syscall"
	"testing"
)

// cpuTime is the CPU time of the process so far, in nanoseconds.
func cpuTime(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano() + usage.Stime.Nano())
}
