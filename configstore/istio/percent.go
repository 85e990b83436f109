// SPDX-License-Identifier: Apache-2.0

package istio

// checkPercent rejects values that are not percentages, including NaN.
func checkPercent[N int32 | uint32 | float64](at *field, percent N) {
	if !(percent >= 0 && percent <= 100) { //nolint:staticcheck // The negation is what refuses NaN.
		at.refuse("must be 0–100, is %v", percent)
	}
}
