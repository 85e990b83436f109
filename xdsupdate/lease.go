// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "go.uber.org/atomic"

// lease is the right of an owner to write to one shard. It ends with Close of the
// owner, and when another one takes the shard over. What was written by it stays, and
// whoever has it knows by which lease that was: what predecessors have left is found there.
type lease struct {
	owners *Owners
	age    uint64 // of the owner
	ended  atomic.Bool
	// heir: the shard has had a lease before.
	heir bool
}

// holds reports whether the lease has not ended.
func (l *lease) holds() bool { return !l.ended.Load() }

// succeeds reports whether a predecessor has written what was written by a right.
func (l *lease) succeeds(by right) bool {
	for at := &by; at != nil; at = at.more {
		if at.lease != nil && at.lease.owners == l.owners {
			return at.lease != l
		}
	}
	return false
}

// right is what a call about a shard is made by: the lease of an owner and, if the owner
// was called by another one, that one's right. Leases can end at any time, so that
// whoever writes asks with the lock held under which it puts writes in an order. The zero
// right is that of calls without an owner, which never ends.
type right struct {
	lease *lease
	more  *right
}

// holds reports whether none of the leases has ended.
func (r right) holds() bool {
	for at := &r; at != nil; at = at.more {
		if at.lease != nil && !at.lease.holds() {
			return false
		}
	}
	return true
}

// succeeds reports whether an owner has taken the shard over since something was written by a
// right.
func (r right) succeeds(by right) bool {
	for at := &r; at != nil; at = at.more {
		if at.lease != nil && at.lease.succeeds(by) {
			return true
		}
	}
	return false
}
