// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Options of a Publisher for events of type E and states of type S.
type Options[E, S any] struct {
	// Name begins the message of the panic of a second Run, for example "kube".
	Name string
	// Shard is the shard of the registry.
	Shard xdsupdate.ShardKey
	// Updater is called for every change. A nil updater is xdsupdate.Discard, and a warning.
	Updater xdsupdate.XDSUpdater
	// Initial is the state before the first change.
	Initial *S
	// Handle handles the queued events, at least one, and calls Publish. It owns the slice until it
	// returns. A registry without Handle has no events and calls Commit.
	Handle func([]E)
	// Inline makes the goroutine that adds an event or subscribes deliver the queue before its call
	// returns, unless another goroutine or an outer call is delivering. Without Inline, only Run,
	// Drain and Flush deliver. Commit always delivers.
	Inline bool
	// Commit is called with a lock held before a state becomes visible. It is for a registry that
	// has mutable data besides its state. It may be nil.
	Commit func(prev, next *S)
	// Set returns the services of a state, which become part of each update. If Set or its result
	// is nil, readers get the services from the registry instead of the root.
	Set func(*S) *registry.ServiceSet
	// Services and Workloads return the objects that a new handler gets first, from the state that
	// was the last announced one at its registration. The delivering goroutine calls them outside
	// of Handle.
	Services  func(*S) []*registry.Service
	Workloads func(*S) []*registry.WorkloadInstance
	// Logger logs panics and a missing updater. The default, nil, discards.
	Logger *slog.Logger
}

// Publisher publishes the states of a registry. The package comment describes how. Create it with
// New.
//
// Every method may be called from any goroutine, and from handlers and the updater, except Flush
// and unless its comment says otherwise.
type Publisher[E, S any] struct {
	opts   Options[E, S]
	source xdsupdate.Source
	// ofUpdater logs panics of the updater.
	ofUpdater func(*guard.PanicError)

	// queue contains the unhandled events and the pending announcements for handlers.
	queue *notify.Queue[message[E]]
	// handlers counts the subscriptions to each kind of announcement.
	handlers [kinds]atomic.Int64

	// state is the state visible to readers.
	state atomic.Pointer[S]

	// mu keeps the states, the updates and the announcements in one order, and makes the last state
	// and the position of a new handler consistent.
	mu sync.Mutex
	// target is the updater.
	target target
	// last is the last announced state. ended is true after Run.
	last  *S
	ended bool

	// events is reused for the argument of Handle. Only the goroutine that handles a batch uses it.
	events []E
}

// message is an event or, if announcement is set, an announcement for handlers.
type message[E any] struct {
	event        E
	announcement *announcement
}

func (m message[E]) isEvent() bool { return m.announcement == nil }

// New returns a publisher with the initial state. It starts no goroutine.
func New[E, S any](opts Options[E, S]) *Publisher[E, S] {
	p := &Publisher[E, S]{opts: opts, last: opts.Initial}
	p.state.Store(opts.Initial)
	p.opts.Initial = nil // because a state may keep all later states in memory
	p.ofUpdater = func(err *guard.PanicError) { p.panicked("updater", err) }
	if opts.Updater == nil && opts.Logger != nil {
		opts.Logger.Warn("the registry has no updater, so that nothing is pushed: give it one; xdsupdate.Discard{} means that none is wanted",
			slog.String("registry", opts.Shard.String()))
	}
	p.SetUpdater(opts.Updater)
	p.queue = notify.New(notify.Options[message[E]]{Name: opts.Name, Panicked: p.handlerPanicked})
	// This subscription is the first one, because the registry and the updater precede handlers.
	if opts.Handle != nil {
		p.queue.Subscribe(notify.Subscription[message[E]]{Batch: p.handle, Wants: message[E].isEvent})
	} else {
		p.queue.Subscribe(notify.Subscription[message[E]]{
			Wants:  func(m message[E]) bool { return m.announcement.kind == ofUpdate },
			Handle: func(message[E]) { p.report() },
		})
	}
	p.deliverInline()
	return p
}

// State returns the state visible to readers.
func (p *Publisher[E, S]) State() *S { return p.state.Load() }

// Enqueue appends events to the queue without other messages in between, and delivers with
// Options.Inline.
func (p *Publisher[E, S]) Enqueue(events ...E) {
	p.Push(events...)
	p.deliverInline()
}

// Push is Enqueue without delivery. It may be called with a lock held.
func (p *Publisher[E, S]) Push(events ...E) {
	var room [4]message[E] // usually enough
	messages := room[:0]
	for _, e := range events {
		messages = append(messages, message[E]{event: e})
	}
	p.queue.Push(messages...)
}

func (p *Publisher[E, S]) deliverInline() {
	if p.opts.Inline {
		p.queue.Drain()
	}
}

// handle calls Options.Handle with the events of messages.
func (p *Publisher[E, S]) handle(messages []message[E]) {
	events := p.events
	p.events = nil // in use if Handle panics
	for _, m := range messages {
		events = append(events, m.event)
	}
	defer func() { p.events = Emptied(events) }()
	p.opts.Handle(events)
}

func (p *Publisher[E, S]) handlerPanicked(err *guard.PanicError, m message[E], _ int) {
	if m.isEvent() {
		p.panicked("registry", err)
	} else {
		p.panicked("event handler", err)
	}
}

// Run delivers until stop is closed. Afterwards, no event is handled and neither the updater nor
// handlers are called, except by another goroutine that is still delivering. A second call panics.
func (p *Publisher[E, S]) Run(stop <-chan struct{}) {
	p.queue.Run(stop)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// Drain delivers the queue on the caller's goroutine, unless another goroutine is delivering.
func (p *Publisher[E, S]) Drain() { p.queue.Drain() }

// Flush waits until all events queued before the call have been handled, and the updater and the
// handlers have been notified. Handlers and the updater must not call it. It returns the cause of
// ctx's end, or an error if Run has ended.
func (p *Publisher[E, S]) Flush(ctx context.Context) error {
	// First the events, then the resulting announcements.
	for range 2 {
		if err := p.queue.Flush(ctx); err != nil {
			return fmt.Errorf("flush registry %s: %w", p.opts.Shard, err)
		}
	}
	return nil
}

// Idle reports whether all queued events have been handled and committed, and all announcements delivered.
func (p *Publisher[E, S]) Idle() bool { return p.queue.Idle() && !p.Inbox().Holds() }

// Started reports whether delivery has begun.
func (p *Publisher[E, S]) Started() bool { return p.queue.Started() }

// HasSynced reports whether all events that were queued when the source first reported completeness
// have been handled. A nil source is always complete.
func (p *Publisher[E, S]) HasSynced(source func() bool) bool { return p.queue.HasSynced(source) }
