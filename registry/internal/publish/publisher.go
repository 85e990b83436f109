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
	// Shard is that of the registry.
	Shard xdsupdate.ShardKey
	// Updater is called for every change. A nil updater is xdsupdate.Discard.
	Updater xdsupdate.XDSUpdater
	// Initial is the state before the first change.
	Initial *S
	// Handle handles the events that are waiting, at least one, and calls Publish. The
	// slice is its own until it returns. Without it there are no events: the registry
	// calls Commit.
	Handle func([]E)
	// Inline: whoever brings an event, or subscribes, delivers what is waiting before
	// the call returns, unless another goroutine, or an outer call, is at it. Otherwise
	// Run, Drain and Flush alone deliver. Commit always does.
	Inline bool
	// Commit is called before a state becomes visible, with a lock held, for a registry of which
	// a state is more than the value; nil: nothing is.
	Commit func(prev, next *S)
	// Set returns the services of a state, of which updates tell; nil, also as the result: the
	// services are read by whoever wants them.
	Set func(*S) *registry.ServiceSet
	// Services and Workloads return what handlers get first, from the state that was
	// the last reported one when they were registered. The delivering goroutine calls
	// them, not within Handle.
	Services  func(*S) []*registry.Service
	Workloads func(*S) []*registry.WorkloadInstance
	// Logger gets panics. The default, nil, discards.
	Logger *slog.Logger
}

// Publisher publishes the states of a registry. The package comment says how. Create
// it with New.
//
// Every method may be called from any goroutine and, but for Flush, from within
// handlers and the updater, unless it says otherwise.
type Publisher[E, S any] struct {
	reporter
	opts   Options[E, S]
	source xdsupdate.Source

	// queue has the events that were not handled yet, and what handlers were not
	// notified of yet.
	queue *notify.Queue[message[E]]
	// handlers counts the subscriptions to each kind of announcement.
	handlers [kinds]atomic.Int64

	// state is what readers see.
	state atomic.Pointer[S]

	// mu makes these of one moment: the next state, its place in the order of updates, and that of
	// its announcements in the queue; the last state and registrations.
	mu sync.Mutex
	// last is the last state that was published. ended: Run is over.
	last  *S
	ended bool

	// events is room for what Handle is called with. Only the goroutine that handles a batch
	// uses it.
	events []E
}

// message is an event or, if announcement is set, what handlers are to be notified of.
type message[E any] struct {
	event        E
	announcement *announcement
}

func (m message[E]) isEvent() bool { return m.announcement == nil }

// New returns a publisher that shows the initial state. It starts nothing.
func New[E, S any](opts Options[E, S]) *Publisher[E, S] {
	p := &Publisher[E, S]{
		reporter: reporter{shard: opts.Shard, logger: opts.Logger},
		opts:     opts, last: opts.Initial,
	}
	p.state.Store(opts.Initial)
	p.opts.Initial = nil // a state may hold on to all that came after it
	p.ofUpdater = func(err *guard.PanicError) { p.panicked("updater", err) }
	p.SetUpdater(opts.Updater)
	p.queue = notify.New(notify.Options[message[E]]{Name: opts.Name, Panicked: p.handlerPanicked})
	// This subscription comes first: what happens to the registry, and the updater,
	// comes before handlers.
	if opts.Handle != nil {
		p.queue.Subscribe(notify.Subscription[message[E]]{Batch: p.handle, Wants: message[E].isEvent})
	} else {
		p.queue.Subscribe(notify.Subscription[message[E]]{
			Wants:  func(m message[E]) bool { return m.announcement.kind == ofUpdate },
			Handle: func(m message[E]) { p.report(m.announcement.proxies) },
		})
	}
	p.deliverInline()
	return p
}

// State returns what readers see.
func (p *Publisher[E, S]) State() *S { return p.state.Load() }

// Enqueue puts events into the queue, with nothing in between.
func (p *Publisher[E, S]) Enqueue(events ...E) {
	var room [4]message[E] // mostly there are few
	messages := room[:0]
	for _, e := range events {
		messages = append(messages, message[E]{event: e})
	}
	p.queue.Push(messages...)
	p.deliverInline()
}

func (p *Publisher[E, S]) deliverInline() {
	if p.opts.Inline {
		p.queue.Drain()
	}
}

// handle is Options.Handle, of messages.
func (p *Publisher[E, S]) handle(messages []message[E]) {
	events := p.events
	p.events = nil // in use, should Handle not return
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

// Run delivers until stop is closed; from then on nothing is handled, and neither the
// updater nor handlers are called, but for what another goroutine is at. A second
// call panics.
func (p *Publisher[E, S]) Run(stop <-chan struct{}) {
	p.queue.Run(stop)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// Drain delivers what is waiting on the caller's goroutine, unless another one is at it.
func (p *Publisher[E, S]) Drain() { p.queue.Drain() }

// Flush returns when everything that was known before the call has been handled, and
// the updater and the handlers have been notified of it. Handlers and the updater must
// not call it. It returns the cause of ctx's end, or an error if Run has ended.
func (p *Publisher[E, S]) Flush(ctx context.Context) error {
	// Events first, then the changes that they led to.
	for range 2 {
		if err := p.queue.Flush(ctx); err != nil {
			return fmt.Errorf("flush registry %s: %w", p.shard, err)
		}
	}
	return nil
}

// Started reports whether delivery has begun.
func (p *Publisher[E, S]) Started() bool { return p.queue.Started() }

// HasSynced reports whether everything has been handled that was queued when the source
// first reported that it is complete; nil: it always is.
func (p *Publisher[E, S]) HasSynced(source func() bool) bool { return p.queue.HasSynced(source) }
