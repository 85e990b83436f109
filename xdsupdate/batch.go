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
// ends every wait of a batch. Where the capture waits for a batch that takes long,
// because it has no processor for instance, there is nothing to wait for: after
// batchWait the gate is open until that batch has ended. Where the capture is reading,
// the batch is let in after readWait or, if a capture has waited for long, or was
// disturbed, after maxBatchWait. A capture that is reading at that moment reads
// again, maxReads times at most. Captures copy pointers, so that all of these are
// exceptions. Thus only captures wait without a limit, and only for batches to end.
type gate struct {
	mu sync.Mutex
	// late are the batches that run, and for which a batch has waited too long; batches
	// are all that run. captures are those that run or wait.
	late, batches, captures int
	// begun counts all batches ever: a capture compares it to see whether it was
	// disturbed. Of those that run, the late ones are the ones up to lateUpTo.
	begun, lateUpTo uint64
	// since is from when on there has been a capture, and disturbed how many of them
	// read again.
	since     time.Time
	disturbed int
	// idle is closed when no batch is running any more, open when no capture is
	// there any more, or there are late batches; nil unless something waits for that.
	idle, open chan struct{}
}

// batchWait is how long a batch waits for a capture that waits for other batches: a
// registry is not to notice that another one publishes much. readWait is how long it
// waits for one that reads.
const batchWait, readWait = time.Millisecond, 4 * time.Millisecond

// maxBatchWait is how long a batch waits for captures that would not get their turn
// otherwise. It is much longer than a batch or a capture should take, so that it
// matters for nested batches only.
const maxBatchWait = 100 * time.Millisecond

// maxReads is how often a capture reads that batches do not wait for: one that takes
// so long, or waits for a batch itself, against its contract, ends all the same.
const maxReads = 4

func (g *gate) batch(publish func()) {
	n := g.beginBatch()
	defer g.endBatch(n)
	publish()
}

// beginBatch returns the number of the batch.
func (g *gate) beginBatch() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closedLocked() {
		g.awaitCapturesLocked()
	}
	g.batches++
	g.begun++
	return g.begun
}

func (g *gate) endBatch(n uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n <= g.lateUpTo {
		g.late--
	}
	if g.batches--; g.batches == 0 {
		release(&g.idle)
	}
}

// closedLocked reports whether batches are to wait for captures.
func (g *gate) closedLocked() bool { return g.captures > 0 && (g.late == 0 || g.starvedLocked()) }

// starvedLocked reports whether batches have kept captures from their turn.
func (g *gate) starvedLocked() bool { return g.disturbed > 0 || time.Since(g.since) >= maxBatchWait }

func (g *gate) awaitCapturesLocked() {
	wait := readWait
	switch {
	case g.starvedLocked():
		wait = maxBatchWait
	case g.batches > 0:
		wait = batchWait
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for g.closedLocked() {
		open := waitOn(&g.open)
		g.mu.Unlock()
		select {
		case <-open:
			g.mu.Lock()
		case <-timeout.C:
			g.mu.Lock()
			if g.late == 0 {
				g.late, g.lateUpTo = g.batches, g.begun
				release(&g.open)
			}
			return
		}
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
