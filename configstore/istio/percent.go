// SPDX-License-Identifier: Apache-2.0

package istio

// checkPercent refuses what is no percentage. Not a number is none.
func checkPercent[N int32 | uint32 | float64](at *field, percent N) {
	if !(percent >= 0 && percent <= 100) { //nolint:staticcheck // The negation is what refuses NaN.
		at.refuse("must be 0–100, is %v", percent)
	}
}
