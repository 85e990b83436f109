// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Publish makes a state visible, tells the updater, and queues what handlers are to
// be notified of. Only Options.Handle calls it. The change is the caller's again when it
// returns, but for what its parts refer to.
func (p *Publisher[E, S]) Publish(next *S, c *Change) {
	p.mu.Lock()
	p.commitLocked(next, c)
	p.mu.Unlock()
	p.report(c.Proxies)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.announceLocked(next, c)
}

// Commit makes a change at once. edit returns the next state and the difference, or the
// same state if nothing differs, or an error, which Commit returns. It is called
// with a lock held, so that commits come one after the other, and must not call
// anything of the publisher. The change belongs to the publisher then. Not for a
// registry with Options.Handle.
//
// The updater and the handlers have been notified when Commit returns, unless another
// goroutine, or an outer call, is doing so: then that one goes on with this change.
func (p *Publisher[E, S]) Commit(edit func(*S) (*S, *Change, error)) error {
	err := p.edit(edit)
	p.queue.Drain()
	return err
}

func (p *Publisher[E, S]) edit(edit func(*S) (*S, *Change, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.state.Load()
	next, c, err := edit(old)
	if err != nil || next == old {
		return err
	}
	p.commitLocked(next, c)
	if c != nil && (c.Proxies != nil || p.target.inbox.Follows()) {
		p.push(announcement{kind: ofUpdate, proxies: c.Proxies})
	}
	p.announceLocked(next, c)
	return nil
}

// commitLocked makes a state visible and tells the updater. An updater that is the program's
// own is called by report.
func (p *Publisher[E, S]) commitLocked(next *S, c *Change) {
	t := &p.target
	if !p.ended {
		t.inbox.Begin()
	}
	if p.opts.Commit != nil {
		p.opts.Commit(p.state.Load(), next)
	}
	p.state.Store(next)
	if p.ended {
		return
	}
	if p.opts.Set != nil {
		t.tell(&p.source, p.opts.Set(next))
	}
	if c != nil {
		t.note(p.shard, c)
	}
	t.inbox.Commit(&t.update)
	t.update.Reset()
}

// SetUpdater makes another updater be called from now on; nil is xdsupdate.Discard. A
// registry with Options.Handle calls it there.
func (p *Publisher[E, S]) SetUpdater(updater xdsupdate.XDSUpdater) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target.services != nil {
		p.target.commit(func() { p.target.tell(&p.source, nil) })
	}
	p.target = target{XDSUpdater: xdsupdate.Multi(updater), inbox: xdsupdate.NewInbox(updater)}
	if p.opts.Set != nil {
		p.target.commit(func() { p.target.tell(&p.source, p.opts.Set(p.state.Load())) })
	}
}

// Inbox returns where updates go at present.
func (p *Publisher[E, S]) Inbox() xdsupdate.Inbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target.inbox
}

// ServicesAt implements xdsupdate.RootReader for a registry.
func (p *Publisher[E, S]) ServicesAt(root *xdsupdate.Root) (*registry.ServiceSet, bool) {
	return root.Services(&p.source)
}
