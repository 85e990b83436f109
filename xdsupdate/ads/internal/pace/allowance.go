// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"context"
	"net"
	"reflect"
	"sync"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/pilotkit/pilotkit/internal/limit"
)

// WorkAtOnce is the work that a connection may request at once, WorkPerSecond in the long run, in
// units of about a microsecond of a processor. An Envoy that comes back subscribes to a cluster and
// an assignment of each of 50,000 services by name at once, and to hundreds per second after that.
const (
	WorkAtOnce    = 100_000
	WorkPerSecond = 20_000
)

// Allowances are the allowances of all connections.
type Allowances struct {
	mu    sync.Mutex
	of    map[net.Addr]*Allowance
	sweep int // the number of allowances that starts a sweep
}

// Allowance is the allowance of one connection; streams is the number of its streams.
type Allowance struct {
	Bucket
	streams int
}

// Open returns the allowance of a stream's connection. If the connection is not known, the stream
// gets an allowance of its own. The caller calls done at the end of the stream.
func (a *Allowances) Open(ctx context.Context) (of *Allowance, done func()) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil || reflect.TypeOf(p.Addr).Kind() != reflect.Pointer {
		return NewAllowance(), func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if of = a.of[p.Addr]; of == nil {
		a.drop()
		of = NewAllowance()
		a.of[p.Addr] = of
	}
	of.streams++
	return of, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		of.streams--
	}
}

// sweepAtLeast is the number of allowances that are kept without a check for use.
const sweepAtLeast limit.Size = 64

// drop drops unused allowances, now and then. The caller holds mu.
func (a *Allowances) drop() {
	if a.of == nil {
		a.of = make(map[net.Addr]*Allowance)
	}
	if len(a.of) < max(sweepAtLeast.Get(), a.sweep) {
		return
	}
	now := time.Now()
	for addr, of := range a.of {
		if of.streams == 0 && of.isFull(now) {
			delete(a.of, addr)
		}
	}
	a.sweep = 2 * len(a.of)
}

// NewAllowance returns a full allowance.
func NewAllowance() *Allowance { return &Allowance{Bucket: NewBucket(WorkPerSecond, WorkAtOnce)} }

// Allows reports whether some work may be done at once, and counts it then.
func (a *Allowances) Allows(of *Allowance, work int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return of.Take(time.Now(), float64(work))
}

// Spend counts work that was done without an earlier Allows: later work waits longer.
func (a *Allowances) Spend(of *Allowance, work int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of.tokens = max(-WorkAtOnce, of.tokens-float64(work))
}

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
