// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is how long to wait between attempts, which is more each time.
type backoff struct{ last, longest time.Duration }

// firstBackoff is the time until the second attempt.
const firstBackoff = 200 * time.Millisecond

// next returns the time until the next attempt: up to half of it longer, by chance, so
// that replicas that were disturbed together do not return together.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, firstBackoff), b.longest)
	return b.last + time.Duration(rand.Float64()*float64(b.last)/2) //nolint:gosec // no secret
}

func (b *backoff) reset() { b.last = 0 }

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
