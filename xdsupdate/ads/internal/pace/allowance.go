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

// WorkAtOnce is what a connection may ask for at once, WorkPerSecond in the long run, in
// units of about a microsecond of a processor: an Envoy that comes back asks for a cluster and
// an assignment by name of each of 50,000 services at once, and for hundreds a second after
// that.
const (
	WorkAtOnce    = 100_000
	WorkPerSecond = 20_000
)

// Allowances are those of all connections.
type Allowances struct {
	mu    sync.Mutex
	of    map[net.Addr]*Allowance
	sweep int // how many there are when those that are not needed are dropped
}

// Allowance is that of one connection; streams is how many it has.
type Allowance struct {
	Bucket
	streams int
}

// Open returns the allowance of a stream's connection. Without one that is known to be
// its own, a stream has its own. done is to be called in the end.
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

// sweepAtLeast is how many allowances are kept without a look at whether they are needed.
const sweepAtLeast limit.Size = 64

// drop drops the allowances that are not needed, now and then. The caller holds mu.
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

// NewAllowance returns one of which nothing is used yet.
func NewAllowance() *Allowance { return &Allowance{Bucket: NewBucket(WorkPerSecond, WorkAtOnce)} }

// Allows reports whether some work may be done at once.
func (a *Allowances) Allows(of *Allowance, work int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return of.Take(time.Now(), float64(work))
}

// Spend notes work that was done and that nobody had asked for: what follows has to wait for
// longer.
func (a *Allowances) Spend(of *Allowance, work int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of.tokens = max(-WorkAtOnce, of.tokens-float64(work))
}
