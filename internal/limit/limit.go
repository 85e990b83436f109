// SPDX-License-Identifier: Apache-2.0

package limit

import "go.uber.org/atomic"

// Size is a size at which code switches to another way to the same result, such as the largest
// buffer that is reused. It never affects the result.
type Size int

// lowered is what all sizes are at most, unless it is 0. Only the tests of a package that
// run with lowered sizes set it, before they begin.
var lowered atomic.Int64 //nolint:gochecknoglobals // One switch for all packages, which no product code sets.

// Get returns the size.
func (s Size) Get() int {
	if most := lowered.Load(); most > 0 {
		return min(int(s), int(most))
	}
	return int(s)
}

// Lower bounds all sizes by most from now on; 0 restores them. It is for tests only, and must be
// called before anything else runs, because data built with one size must not meet another.
func Lower(most int) { lowered.Store(int64(most)) }
