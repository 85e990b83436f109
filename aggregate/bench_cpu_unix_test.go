// SPDX-License-Identifier: Apache-2.0

//go:build unix

package aggregate_test

import (
	"syscall"
	"time"
)

// cpuTime returns the time that all threads of the process have used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
