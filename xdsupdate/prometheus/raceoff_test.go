// SPDX-License-Identifier: Apache-2.0

//go:build !race

package prometheus_test

// raceEnabled: the race detector makes everything ten times slower.
const raceEnabled = false
