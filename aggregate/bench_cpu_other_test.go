// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package aggregate_test

import "time"

// cpuTime is not known on this system.
func cpuTime() time.Duration { return 0 }
