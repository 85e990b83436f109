// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"context"
	"net"
	"reflect"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
)

// Requests are work, and clients send as many as they like. So each connection has an
// allowance of work that is done at once, of which only large pieces take turns, on half
// of the processors. What goes beyond takes turns of its own: it is done for few clients
// at a time, the first to come first, and after each turn its processor is left to others
// for some time. A client that waits is not read from, so that what it
// sends fills its window of HTTP/2 and costs nothing. Changes and the responses to them
// wait for none of this, nor do answers to responses.

// Work is counted in units of about a microsecond of a processor.
const (
	// streamWork is that of opening a stream, trialWork that of making what is tried on a
	// client that refuses something, with one more for each object, and requestWork that of a request that is no
	// answer; for each name that it has, and for each workBytes bytes there is one more,
	// and one for each workTopics names that are subscribed already.
	streamWork  = 1_000
	trialWork   = 200
	requestWork = 50
	workBytes   = 64
	workTopics  = 20
	// largeWork is from how much on work takes turns that is allowed: who holds the lock
	// is not to wait for a processor behind many others.
	largeWork = 1_000
	// workAtOnce is what a connection may ask for at once, workPerSecond in the long
	// run: an Envoy that comes back asks for a cluster and an assignment by name of each
	// of 50,000 services at once, and for hundreds a second after that.
	workAtOnce    = 100_000
	workPerSecond = 20_000
	// restFor is how many times longer than a turn the rest after it is.
	restFor = 3
)

// work returns what a request costs. answers: a response to the client waits for its answer.
func (r *request) work(answers bool, topics int) int {
	names := r.names.count + r.subscribe.count + r.unsubscribe.count + r.initialVersions.count
	switch {
	case answers && names == 0:
		return 0
	case r.same:
		return requestWork // the names are compared as a whole
	case names == 0:
		return requestWork + r.bytes/workBytes
	default:
		return requestWork + r.bytes/workBytes + names + topics/workTopics
	}
}

// allowances are those of all connections.
type allowances struct {
	mu    sync.Mutex
	of    map[net.Addr]*allowance
	sweep int // how many there are when those that are not needed are dropped
}

// allowance is that of one connection; streams is how many it has.
type allowance struct {
	bucket
	streams int
}

// open returns the allowance of a stream's connection. Without one that is known to be
// its own, a stream has its own. done is to be called in the end.
func (a *allowances) open(ctx context.Context) (of *allowance, done func()) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil || reflect.TypeOf(p.Addr).Kind() != reflect.Pointer {
		return newAllowance(), func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if of = a.of[p.Addr]; of == nil {
		a.drop()
		of = newAllowance()
		a.of[p.Addr] = of
	}
	of.streams++
	return of, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		of.streams--
	}
}

// drop drops the allowances that are not needed, now and then. The caller holds mu.
func (a *allowances) drop() {
	const atLeast = 64
	if a.of == nil {
		a.of = make(map[net.Addr]*allowance)
	}
	if len(a.of) < max(atLeast, a.sweep) {
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

func newAllowance() *allowance { return &allowance{bucket: newBucket(workPerSecond, workAtOnce)} }

// allows reports whether some work may be done at once.
func (a *allowances) allows(of *allowance, work int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return of.take(time.Now(), float64(work))
}

// spend notes work of a stream that was done and that its request did not show: what
// follows has to wait for longer.
func (s *stream) spend(work int) {
	a := &s.server.allowances
	a.mu.Lock()
	defer a.mu.Unlock()
	s.allowance.tokens = max(-workAtOnce, s.allowance.tokens-float64(work))
}

// newWorkTurns returns turns for work on half of the processors.
func newWorkTurns() *turns { return newTurns(max(1, runtime.GOMAXPROCS(0)/2)) }

// await waits until some work may be done. It returns nil if the stream has ended.
func (s *stream) await(work int) (done func()) {
	allowed := work == 0 || s.server.allowances.allows(s.allowance, work)
	turns := s.server.excess
	switch {
	case allowed && work < largeWork:
		return func() {}
	case allowed:
		turns = s.server.large
	}
	mine := turns.ask()
	select {
	case <-mine:
	case <-s.ended:
		turns.cancel(mine)
		return nil
	}
	begun := time.Now()
	return func() {
		if allowed {
			turns.end(0)
			return
		}
		rest := restFor * max(time.Since(begun), time.Duration(work)*time.Microsecond)
		time.AfterFunc(rest, func() { turns.end(0) })
	}
}
