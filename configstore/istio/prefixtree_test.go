// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"
	"testing"
)

// FuzzPrefixTree: the tree finds the same strings as a linear search.
func FuzzPrefixTree(f *testing.F) {
	f.Add("/a,/ab,/b,,/abc/d", "/abc")
	f.Add("/abc,/abd,/a", "/abd/e")
	f.Add("ab,a,abc", "abc")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, all, s string) {
		var tree prefixTree[int]
		values := map[string]int{}
		for i, prefix := range strings.Split(all, ",") {
			tree.add(prefix, i)
			values[prefix] = i
			wantEnd, want, found := 0, 0, false
			for end := range len(s) + 1 {
				if value, ok := values[s[:end]]; ok {
					wantEnd, want, found = end, value, true
					break
				}
			}
			if end, value, ok := tree.shortest(s); end != wantEnd || value != want || ok != found {
				t.Fatalf("%q in %v = %d, %d, %v, want %d, %d, %v", s, values, end, value, ok, wantEnd, want, found)
			}
		}
	})
}
