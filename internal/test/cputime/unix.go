// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package cputime measures the CPU time of benchmarks, because it is comparable on a machine that
// has other work to do.
package cputime

import (
	"syscall"
	"time"
)

// Used returns the CPU time of all threads of the process, or 0 on a system that does not tell it.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
