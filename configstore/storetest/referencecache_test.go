// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

// delivery is the part of the reference that makes it a cache.
type delivery struct {
	handlers []*registration
	queue    []entry
	wake     chan struct{}
	ran      bool
	// running: a Run has begun and not returned; ended: it has.
	running, ended bool
	synced         bool
	// aside guards held and collected: a fault that lets writers call handlers makes several passes
	// at once, which must break the promise and nothing else.
	aside sync.Mutex
	// held is an event that the fault "kinds have queues" keeps back.
	held []func()
	// flushing is held by a Flush: Run begins after it, so that both never call handlers at the same time.
	flushing sync.Mutex
	// passing: handlers are being called.
	passing bool
}

type registration struct {
	kinds     []configstore.GroupVersionKind
	single    configstore.EventHandler
	batch     configstore.BatchHandler
	number    int
	since     uint64
	cancelled bool
	collected []configstore.Change
}

// entry is a change for all handlers, a replay for one, or a function.
type entry struct {
	change configstore.Change
	replay *registration
	do     func()
}

func (r *reference) enqueue(c configstore.Change) {
	if last := len(r.queue) - 1; r.is("events of a key are merged") && last >= 0 &&
		r.queue[last].do == nil && r.queue[last].change.Curr.Key() == c.Curr.Key() {
		r.queue[last].change = c
		return
	}
	if r.is("a full queue drops") && len(r.queue) >= 100 {
		return
	}
	r.push(entry{change: c})
}

func (r *reference) push(e entry) {
	r.queue = append(r.queue, e)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// room makes a writer wait.
func (r *reference) room() (wait bool) { return r.is("a full queue blocks") && len(r.queue) > 100 }

func (r *reference) RegisterEventHandler(kind configstore.GroupVersionKind, h configstore.EventHandler) {
	r.register(&registration{kinds: []configstore.GroupVersionKind{kind}, single: h})
}

func (r *reference) Subscribe(
	kinds []configstore.GroupVersionKind, h configstore.BatchHandler,
) (objects []*configstore.Config, cancel func()) {
	for _, kind := range kinds {
		objects = append(objects, r.List(kind, configstore.NamespaceAll)...)
	}
	if r.is("subscribe lists nothing") {
		objects = nil
	}
	reg := &registration{kinds: slices.Clone(kinds), batch: h}
	if !r.is("what is listed is replayed") {
		reg.since = 1
	}
	return objects, r.register(reg)
}

func (r *reference) register(reg *registration) (cancel func()) {
	r.lock()
	defer r.unlock()
	for i, kind := range reg.kinds {
		schema, ok := r.schemas.Find(kind)
		if !ok && !r.is("unknown kinds may be watched") {
			panic("storetest: unknown kind " + kind.String())
		}
		if !r.is("handlers are kept under the alias") {
			reg.kinds[i] = schema.GroupVersionKind
		}
	}
	if r.passing && r.is("no registration in handlers") {
		return func() {}
	}
	replay := reg.since == 0 && !r.is("no replay") && (!r.ran || !r.is("no late replay"))
	reg.since = r.revision
	reg.number = len(r.handlers)
	if replay {
		for _, c := range r.objects {
			if slices.Contains(reg.kinds, c.GroupVersionKind) {
				r.push(entry{replay: reg, change: configstore.Change{Event: configstore.EventAdd, Curr: c}})
			}
		}
		r.sortReplay(reg)
	}
	if r.is("a gap at registration") {
		r.giveWay()
		reg.since = r.revision
	}
	r.handlers = append(r.handlers, reg)
	return func() {
		r.lock()
		defer r.unlock()
		reg.cancelled = !r.is("cancel does nothing")
	}
}

// sortReplay makes the replay that was just queued deterministic.
func (r *reference) sortReplay(reg *registration) {
	from := len(r.queue)
	for from > 0 && r.queue[from-1].replay == reg {
		from--
	}
	slices.SortFunc(r.queue[from:], func(a, b entry) int { return a.change.Curr.Key().Compare(b.change.Curr.Key()) })
}

func (r *reference) Run(stop <-chan struct{}) {
	r.flushing.Lock()
	r.lock()
	if r.ran && !r.is("run twice is fine") {
		r.unlock()
		r.flushing.Unlock()
		panic("storetest: Run was called twice")
	}
	r.ran, r.running = true, true
	r.push(entry{do: func() { r.synced = true }})
	r.unlock()
	r.flushing.Unlock()
	defer r.end()
	if r.is("run does not stop") {
		stop = r.dead
	}
	for {
		select {
		case <-stop:
			if r.is("the queue is drained after stop") {
				r.passUntil(nil)
			}
			return
		case <-r.wake:
			if !r.is("run does not join") {
				r.passUntil(stop)
				continue
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.passUntil(stop)
			}()
			select {
			case <-done:
			case <-stop:
				return
			}
		}
	}
}

func (r *reference) Drain() {
	r.lock()
	r.push(entry{do: func() { r.synced = true }})
	r.unlock()
	if r.is("drain makes one pass") {
		r.pass()
		return
	}
	r.passUntil(nil)
}

func (r *reference) end() {
	r.lock()
	defer r.unlock()
	r.running, r.ended = false, true
}

func (r *reference) Flush(ctx context.Context) error {
	done := make(chan struct{})
	if r.flushing.TryLock() {
		defer r.flushing.Unlock()
	}
	r.lock()
	r.push(entry{do: func() { close(done) }})
	alone, ended := !r.running, r.ended
	r.unlock()
	switch {
	case r.is("flush does not wait"), ended && r.is("flush succeeds after the end"):
		return nil
	case ended:
		return errors.New("flush: the delivery has ended")
	case alone && !r.is("flush needs a worker"):
		r.passUntil(ctx.Done())
	}
	if r.is("flush ignores its context") {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("flush: %w", ctx.Err())
	case <-r.dead:
		return nil
	}
}

func (r *reference) HasSynced() bool {
	r.lock()
	defer r.unlock()
	return !r.is("never synced") && (r.synced || r.is("synced at once"))
}

func (r *reference) passUntil(stop <-chan struct{}) {
	for {
		r.lock()
		n := len(r.queue)
		r.unlock()
		if n == 0 {
			return
		}
		for range n {
			select {
			case <-stop:
				return
			default:
			}
			r.step(1)
			if r.is("batches are cut") {
				r.handBatches()
			}
		}
		r.handBatches()
	}
}

func (r *reference) pass() {
	r.lock()
	n := len(r.queue)
	r.unlock()
	r.step(n)
	r.handBatches()
}

// step handles the first n entries of the queue.
func (r *reference) step(n int) {
	for range n {
		r.lock()
		if len(r.queue) == 0 {
			r.unlock()
			return
		}
		e := r.queue[0]
		r.queue = r.queue[1:]
		if e.do != nil {
			e.do()
			r.unlock()
			continue
		}
		handlers := slices.Clone(r.handlers)
		r.passing = true
		if !r.is("handlers run under the lock") {
			r.unlock()
		}
		r.deliver(e, handlers)
		if !r.is("handlers run under the lock") {
			r.lock()
		}
		r.passing = false
		r.unlock()
	}
}

func (r *reference) deliver(e entry, handlers []*registration) {
	if r.is("handlers run in reverse") {
		slices.Reverse(handlers)
	}
	var parallel sync.WaitGroup
	defer parallel.Wait()
	for _, h := range handlers {
		if !slices.Contains(h.kinds, e.change.Curr.GroupVersionKind) {
			continue
		}
		if e.replay != nil && e.replay != h && !r.is("replays reach all") || e.replay == nil && e.change.Revision <= h.since {
			continue
		}
		late := e.change.Curr.GroupVersionKind.Kind == "Gadget" &&
			(r.is("kinds have queues") || h.number%4 > 1 && r.is("handlers have queues"))
		switch {
		case r.is("handlers run at once"):
			parallel.Go(func() { r.call(h, e) })
		case late:
			r.aside.Lock()
			r.held = append(r.held, func() { r.call(h, e) })
			r.aside.Unlock()
		default:
			r.call(h, e)
		}
	}
	if e.change.Curr.GroupVersionKind.Kind != "Gadget" {
		for _, f := range takeAll(r, &r.held) {
			f()
		}
	}
}

// takeAll empties a collection.
func takeAll[T any](r *reference, from *[]T) []T {
	r.aside.Lock()
	defer r.aside.Unlock()
	out := *from
	*from = nil
	return out
}

func (r *reference) call(h *registration, e entry) {
	if !r.is("handlers run under the lock") {
		r.lock()
		cancelled := h.cancelled
		r.unlock()
		if cancelled {
			return
		}
	}
	c := e.change
	if e.replay != nil && r.is("a replay is an update") {
		c.Event, c.Old = configstore.EventUpdate, c.Curr
	}
	if h.batch != nil {
		if r.is("batches lack old") {
			c.Old = nil
		}
		if r.is("batches come first") {
			h.batch([]configstore.Change{c})
			return
		}
		r.aside.Lock()
		h.collected = append(h.collected, c)
		r.aside.Unlock()
		return
	}
	var old configstore.Config
	if c.Old != nil {
		old = *c.Old
	}
	h.single(old, *c.Curr, c.Event)
}

// handBatches delivers the collected events to the batch handlers.
func (r *reference) handBatches() {
	r.lock()
	handlers := slices.Clone(r.handlers)
	r.unlock()
	for _, h := range handlers {
		batch := takeAll(r, &h.collected)
		if len(batch) == 0 {
			continue
		}
		r.lock()
		cancelled := h.cancelled
		r.unlock()
		if !cancelled {
			h.batch(batch)
		}
	}
}
