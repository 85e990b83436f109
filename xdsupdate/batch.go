// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"sync"
	"time"
)

// BatchUpdater is the optional ability of an XDSUpdater to keep pushes from
// reading a registry in the middle of a change. Find it with As, or call
// UpdateBatch, which does.
type BatchUpdater interface {
	// UpdateBatch calls publish once, on the caller's goroutine, and returns when
	// publish has. In publish a registry makes its new state visible to readers
	// and calls SvcUpdate, EDSUpdate and ConfigUpdate for it: no push reads the
	// one without the other, and a push takes all requests of a batch or none.
	//
	// Many registries may be in publish at the same time. The caller holds no
	// lock that readers of the registry need. Publish should be short, and it must
	// not wait for a push, so not call Flush; ProxyUpdate, and handlers of the
	// registry, which may do either, are called after UpdateBatch has returned. A
	// batch may contain another one, at the price of a delay.
	UpdateBatch(publish func())
}

// UpdateBatch calls publish as a batch of the updater if that, or what it wraps,
// is a BatchUpdater, and just calls it otherwise.
func UpdateBatch(updater XDSUpdater, publish func()) {
	if b, ok := As[BatchUpdater](updater); ok {
		b.UpdateBatch(publish)
		return
	}
	publish()
}

// UpdateBatch implements BatchUpdater. It waits, briefly, while a push captures
// what it reads.
func (p *Pusher) UpdateBatch(publish func()) { p.gate.batch(publish) }

// Capture calls read while no batch is running, so that what it reads of the
// registries and of the index belongs together, as PusherOptions.Capture does for
// pushes, with the same promises.
func (p *Pusher) Capture(read func()) { p.gate.capture(read) }

// gate keeps batches and captures apart: any number of batches run at a time, or
// any number of captures.
//
// Batches that come while a capture waits for others to end wait for the capture,
// or a stream of batches that overlap would starve it. A sync.RWMutex does as
// much, but then a batch waits as long as the longest one of any other registry
// takes, and a batch inside a batch, or one of two updaters that are locked in
// different orders, deadlocks now and then: the capture waits for the outer batch,
// which waits for the inner one, which waits for the capture. The gate therefore
// ends every wait of a batch and lets it in: after batchWait or, if a capture has
// waited for long, or was disturbed, after maxBatchWait. A capture that is reading
// at that moment reads again, maxReads times at most. Captures copy pointers, so
// that both are exceptions. Thus only captures wait without a limit, and only for
// batches to end.
type gate struct {
	mu sync.Mutex
	// batches and captures count those that run, captures also those that wait.
	batches, captures int
	// begun counts all batches ever: a capture compares it to see whether it was
	// disturbed.
	begun uint64
	// since is from when on there has been a capture, and disturbed how many of them
	// read again.
	since     time.Time
	disturbed int
	// idle is closed when no batch is running any more, open when no capture is
	// there any more; nil unless something waits for that.
	idle, open chan struct{}
}

// batchWait is how long a batch waits for captures that wait for others: a registry is
// not to notice that another one publishes much.
const batchWait = 4 * time.Millisecond

// maxBatchWait is how long a batch waits for captures that would not get their turn
// otherwise. It is much longer than a batch or a capture should take, so that it
// matters for nested batches only.
const maxBatchWait = 100 * time.Millisecond

// maxReads is how often a capture reads that batches do not wait for: one that takes
// so long, or waits for a batch itself, against its contract, ends all the same.
const maxReads = 4

func (g *gate) batch(publish func()) {
	g.beginBatch()
	defer g.endBatch()
	publish()
}

func (g *gate) beginBatch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.captures > 0 {
		g.awaitCapturesLocked()
	}
	g.batches++
	g.begun++
}

func (g *gate) endBatch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.batches--; g.batches == 0 {
		release(&g.idle)
	}
}

func (g *gate) awaitCapturesLocked() {
	wait := batchWait
	if g.disturbed > 0 || time.Since(g.since) >= maxBatchWait {
		wait = maxBatchWait
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for expired := false; g.captures > 0 && !expired; {
		open := waitOn(&g.open)
		g.mu.Unlock()
		select {
		case <-open:
		case <-timeout.C:
			expired = true
		}
		g.mu.Lock()
	}
}

func (g *gate) capture(read func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.captures++; g.captures == 1 {
		g.since = time.Now()
	}
	reads := 1
	defer func() {
		if reads > 1 {
			g.disturbed--
		}
		if g.captures--; g.captures == 0 {
			release(&g.open)
		}
	}()
	for ; ; reads++ {
		g.awaitBatchesLocked()
		begun := g.begun
		g.readLocked(read)
		if g.begun == begun || reads == maxReads {
			return
		}
		if reads == 1 {
			g.disturbed++
		}
	}
}

func (g *gate) awaitBatchesLocked() {
	for g.batches > 0 {
		idle := waitOn(&g.idle)
		g.mu.Unlock()
		<-idle
		g.mu.Lock()
	}
}

// readLocked calls read with the lock released.
func (g *gate) readLocked(read func()) {
	g.mu.Unlock()
	defer g.mu.Lock()
	read()
}

// waitOn returns a channel that the next release closes.
func waitOn(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

func release(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
