// SPDX-License-Identifier: Apache-2.0

// Package backoff says how long to wait between attempts to reach something.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// First is the time until the second attempt.
const First = 200 * time.Millisecond

// Backoff is the time between attempts, which is twice as long each time. It is not for
// use by several goroutines.
type Backoff struct {
	// Longest is the longest time, but for chance.
	Longest time.Duration

	last time.Duration
}

// Next returns the time until the next attempt: up to half of it longer, by chance, so
// that replicas that were disturbed together do not return together.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, First), b.Longest)
	return Spread(b.last, 0.5)
}

// Reset restarts the backoff at its shortest delay.
func (b *Backoff) Reset() { b.last = 0 }

// Spread returns a time, or up to a share of it longer, by chance.
func Spread(d time.Duration, share float64) time.Duration {
	return d + time.Duration(share*rand.Float64()*float64(d)) //nolint:gosec // no secret
}

// Sleep waits for a time, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
