// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/internal/guard"

// target takes updates, in one order.
type target interface {
	// begin is called before a registry publishes its new state. A commit follows.
	begin()
	// commit applies an update that has passed a stack of writers. It calls no code of the host and
	// retains the arguments of the calls, but not the update.
	commit(u *Update, by *stack)
	// deliver calls updaters and functions of the host for committed updates. If another goroutine or an
	// outer call is delivering, that one makes the calls. The caller must not hold a lock.
	deliver(panicked func(*guard.PanicError))
	// follows reports whether deliver may call an updater of the host.
	follows() bool
	// holds reports whether a writer holds updates back.
	holds() bool
	// shardsOf returns the shards that belong to a writer.
	shardsOf(w *shardWriter) []ShardKey
}

// targetOf returns an updater of this package as a target, also if it is wrapped (As). Any other updater
// gets a follower, including a type that embeds a target, because its own methods must be called.
func targetOf(updater XDSUpdater) target {
	if _, ok := updater.(Discard); ok {
		return &multi{}
	}
	t, embeds := As[target](updater)
	switch t.(type) {
	case *Pusher, *multi, *shardWriter:
		return t
	default:
		return newFollower(updater, embeds)
	}
}

// Inbox accepts the updates of a registry for an XDSUpdater. Create it with NewInbox.
type Inbox struct{ to target }

// NewInbox returns the inbox of an updater. A nil updater is Discard.
func NewInbox(updater XDSUpdater) Inbox { return Inbox{targetOf(Multi(updater))} }

// Begin is called before the registry publishes the state that the next Commit reports.
func (i Inbox) Begin() { i.to.begin() }

// Commit applies an update as a whole. It calls no code of the host, so that a registry may call it under
// its own lock to keep its updates in order. The caller may reuse the update afterwards, but must not
// modify the arguments of its calls.
func (i Inbox) Commit(u *Update) { i.to.commit(u, nil) }

// Deliver calls the host's own updaters for committed updates, in the order of the commits. If another
// goroutine or an outer call is delivering, that one makes the calls. The caller must not hold a
// lock. panicked receives each panic of an updater.
func (i Inbox) Deliver(panicked func(*guard.PanicError)) { i.to.deliver(panicked) }

// Follows reports whether Deliver may call an updater.
func (i Inbox) Follows() bool { return i.to.follows() }

// Holds reports whether updates are held back until the registry joins an aggregate.
func (i Inbox) Holds() bool { return i.to.holds() }

// facade makes each call of an updater an update.
type facade struct{ recorder }

// deliver has a target make calls. It panics after all calls if one of them panicked.
func deliver(to target) {
	if !to.follows() {
		to.deliver(nil)
		return
	}
	var first *guard.PanicError
	to.deliver(func(p *guard.PanicError) {
		if first == nil {
			first = p
		}
	})
	first.Again()
}

// UpdateBatch implements BatchUpdater. If publish panics, its calls until then are applied.
func (f *facade) UpdateBatch(publish func(XDSUpdater)) {
	var u Update
	f.to.begin()
	defer func() {
		f.to.commit(&u, nil)
		deliver(f.to)
	}()
	publish(&u)
}
