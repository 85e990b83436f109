// SPDX-License-Identifier: Apache-2.0

package pace

import "time"

// Bucket is a token bucket.
type Bucket struct {
	perSecond, burst float64
	tokens           float64
	last             time.Time
}

// NewBucket returns a full bucket. Without a rate, Take always reports true. The burst is at least
// one.
func NewBucket(perSecond, burst float64) Bucket {
	burst = max(1, burst)
	return Bucket{perSecond: perSecond, burst: burst, tokens: burst}
}

// Take reports whether work that takes n tokens may pass now, and takes them.
func (b *Bucket) Take(now time.Time, n float64) bool {
	if b.perSecond <= 0 {
		return true
	}
	b.fill(now)
	if b.tokens < n {
		return false
	}
	b.tokens -= n
	return true
}

func (b *Bucket) fill(now time.Time) {
	if !b.last.IsZero() {
		b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.perSecond)
	}
	b.last = now
}

// isFull reports whether the bucket is in its initial state.
func (b *Bucket) isFull(now time.Time) bool {
	b.fill(now)
	return b.tokens >= b.burst
}
