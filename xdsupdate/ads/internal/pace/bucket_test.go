// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"testing"
	"time"
)

// TestBucket: a burst passes at once, then so many requests as the rate says, and what
// was not used is no more than a burst.
func TestBucket(t *testing.T) {
	begun := time.Unix(1000, 0)
	for what, tt := range map[string]struct {
		perSecond, burst float64
		at               []float64 // seconds
		want             string    // + passes, - does not
	}{
		"no limit":             {0, 0, []float64{0, 0, 0, 0}, "++++"},
		"burst":                {1, 2, []float64{0, 0, 0, 0.5}, "++--"},
		"at least one at once": {1, 0, []float64{0, 0.5, 1.5, 2.5}, "+-++"},
		"rate":                 {10, 1, []float64{0, 0.125, 0.25, 0.3, 0.375}, "+++-+"},
		"not saved up":         {1, 2, []float64{0, 100, 100, 100}, "+++-"},
	} {
		b, got := NewBucket(tt.perSecond, tt.burst), ""
		for _, at := range tt.at {
			if b.Take(begun.Add(time.Duration(at*float64(time.Second))), 1) {
				got += "+"
			} else {
				got += "-"
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", what, got, tt.want)
		}
	}
}
