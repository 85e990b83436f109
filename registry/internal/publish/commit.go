// SPDX-License-Identifier: Apache-2.0

package publish

import "github.com/pilotkit/pilotkit/internal/guard"

// Publish makes a state visible and calls the updater, and queues what handlers are to
// be notified of. Only Options.Handle calls it. The change is the caller's again when it
// returns, but for what its parts refer to.
func (p *Publisher[E, S]) Publish(next *S, c *Change) {
	p.publishing = publication[S]{next, c}
	p.within(p.batch)
	p.publishing = publication[S]{}
	p.updateProxies(c.Proxies)
	p.announce(next, c)
}

// publish is the batch of the updater.
func (p *Publisher[E, S]) publish() {
	if p.opts.Commit != nil {
		p.opts.Commit(p.state.Load(), p.publishing.state)
	}
	p.state.Store(p.publishing.state)
	p.report(p.publishing.change)
}

// Commit makes a change at once. edit returns the next state and what differs, or the
// state that it got if nothing does, or an error, which Commit returns. It is called
// with a lock held, so that commits come one after the other, and must not call
// anything of the publisher. The change belongs to the publisher then. Not for a
// registry with Options.Handle.
//
// The updater and the handlers have been notified when Commit returns, unless another
// goroutine, or an outer call, is doing so: then that one goes on with this change.
func (p *Publisher[E, S]) Commit(edit func(*S) (*S, *Change, error)) (err error) {
	p.within(guard.NewInner(func() {
		err = p.commit(edit)
		// If another goroutine is reporting, its batch, which began before, ends after
		// it has reported this change.
		p.reports.Drain()
	}))
	p.queue.Drain()
	return err
}

func (p *Publisher[E, S]) commit(edit func(*S) (*S, *Change, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.state.Load()
	next, c, err := edit(old)
	if err != nil || next == old {
		return err
	}
	p.state.Store(next)
	p.reports.Push(publication[S]{next, c})
	return nil
}

// reportCommit calls the updater for a commit, and queues the rest.
func (p *Publisher[E, S]) reportCommit(c publication[S]) {
	p.report(c.change)
	p.announce(c.state, c.change)
}
