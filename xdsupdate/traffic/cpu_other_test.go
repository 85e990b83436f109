// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package traffic_test

import "testing"

func cpuTime(*testing.B) float64 { return 0 }
