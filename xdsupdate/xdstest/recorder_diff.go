// SPDX-License-Identifier: Apache-2.0

package xdstest

import (
	"slices"
	"strings"
)

// diffLines returns the shortest way from want to got, a line for each element:
// "  kept", "- missing", "+ unexpected". It is empty if both are equal.
func diffLines(want, got []string) string {
	// common[i][j] is the length of the longest common subsequence of want[i:]
	// and got[j:].
	common := make([][]int, len(want)+1)
	for i := range common {
		common[i] = make([]int, len(got)+1)
	}
	for i, w := range slices.Backward(want) {
		for j, g := range slices.Backward(got) {
			if w == g {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	if n := common[0][0]; n == len(want) && n == len(got) {
		return ""
	}
	var b strings.Builder
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			b.WriteString("  " + want[i])
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && common[i+1][j] >= common[i][j+1]:
			b.WriteString("- " + want[i])
			i++
		default:
			b.WriteString("+ " + got[j])
			j++
		}
		b.WriteByte('\n')
	}
	return b.String()
}
