// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package cputime

import "time"

// Used returns 0, because the CPU time is not known on this system.
func Used() time.Duration { return 0 }
