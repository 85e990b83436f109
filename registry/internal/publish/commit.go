// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Publish makes a state visible, commits the update, calls an updater of the host, and queues the
// changes for handlers. Only Options.Handle may call it. The caller may reuse the change when
// Publish has returned, but must not modify the objects that its fields refer to.
func (p *Publisher[E, S]) Publish(next *S, c *Change) {
	p.commit(next, c)
	p.report()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.announceLocked(next, c)
}

// Commit publishes a change on the caller's goroutine. edit returns the next state and the
// difference, or the former state if there is none, or an error, which Commit returns. edit is
// called with a lock held, so commits are serialized, and must not call the publisher. The
// publisher owns the change from then on. Registries with Options.Handle must not call Commit.
//
// When Commit returns, the updater and the handlers have been notified, unless another goroutine or
// an outer call is delivering. In that case, the other one also delivers this change.
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
		p.push(announcement{kind: ofUpdate})
	}
	p.announceLocked(next, c)
	return nil
}

func (p *Publisher[E, S]) commit(next *S, c *Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commitLocked(next, c)
}

// commitLocked makes a state visible and commits the update. report calls an updater of the host
// later.
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
		t.note(p.opts.Shard, c)
	}
	t.inbox.Commit(&t.update)
	t.update.Reset()
}

// SetUpdater replaces the updater. A nil updater is xdsupdate.Discard. The services of the registry
// move from the former updater to the new one. A registry with Options.Handle calls SetUpdater in
// Handle.
func (p *Publisher[E, S]) SetUpdater(updater xdsupdate.XDSUpdater) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target.services != nil {
		p.target.commit(func() { p.target.tell(&p.source, nil) })
	}
	p.target = target{inbox: xdsupdate.NewInbox(updater)}
	if p.opts.Set != nil {
		p.target.commit(func() { p.target.tell(&p.source, p.opts.Set(p.state.Load())) })
	}
}

// Inbox returns the inbox of the current updater.
func (p *Publisher[E, S]) Inbox() xdsupdate.Inbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target.inbox
}

// ServicesAt implements xdsupdate.RootReader for a registry.
func (p *Publisher[E, S]) ServicesAt(root *xdsupdate.Root) (*registry.ServiceSet, bool) {
	return root.Services(&p.source)
}
