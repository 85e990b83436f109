// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "slices"

// A shard belongs to the youngest of the writers of a group that have called for it and are
// not closed. That is decided where updates are applied, in their order, so that an
// update of a replaced writer has no effect, however late it comes, and nobody waits for
// another's call.

// stack is the writers through which an update has come, the outermost first: one for each
// aggregate. Nil is an update without a writer.
type stack struct {
	writer *shardWriter
	inner  *stack
}

// open reports whether none of the writers is closed.
func (s *stack) open() bool {
	for ; s != nil; s = s.inner {
		if s.writer.closed.Load() {
			return false
		}
	}
	return true
}

// claim is the time in which a shard belongs to a writer.
type claim struct {
	writer *shardWriter
	// heir: the shard has belonged to another one before.
	heir bool
	// last is the last right with this claim, which most updates come by.
	last *right
}

// right is what something of a shard was written by: the claims of a stack. Nil is an
// update without a writer, of which nobody is the successor.
type right struct {
	claim *claim
	inner *right
}

// succeeds reports whether a predecessor has written what was written by another right.
func (r *right) succeeds(by *right) bool {
	for ; r != nil; r = r.inner {
		for at := by; at != nil; at = at.inner {
			if at.claim.writer.group == r.claim.writer.group {
				if at.claim != r.claim {
					return true
				}
				break
			}
		}
	}
	return false
}

type claimKey struct {
	group *Writers
	shard ShardKey
}

// claims has the last claim of each group to each shard. Whoever applies updates has one,
// and guards it.
type claims struct{ last map[claimKey]*claim }

func newClaims() claims { return claims{last: map[claimKey]*claim{}} }

// right returns the right to write to a shard; false if there is none. A writer claims a
// shard that it calls for.
func (t *claims) right(by *stack, shard ShardKey) (*right, bool) {
	if by == nil {
		return nil, true
	}
	inner, ok := t.right(by.inner, shard)
	if !ok {
		return nil, false
	}
	c := t.claim(by.writer, shard)
	if c == nil {
		return nil, false
	}
	if c.last == nil || c.last.inner != inner {
		c.last = &right{c, inner}
	}
	return c.last, true
}

func (t *claims) claim(w *shardWriter, shard ShardKey) *claim {
	key := claimKey{w.group, shard}
	last := t.last[key]
	switch {
	case w.closed.Load(), last != nil && last.writer.age > w.age && !last.writer.closed.Load():
		return nil
	case last != nil && last.writer == w:
		return last
	}
	next := &claim{writer: w, heir: last != nil}
	t.last[key] = next
	return next
}

// of returns the shards that belong to a writer, sorted.
func (t *claims) of(w *shardWriter) []ShardKey {
	var out []ShardKey
	for key, c := range t.last {
		if c.writer == w && !w.closed.Load() {
			out = append(out, key.shard)
		}
	}
	slices.SortFunc(out, compareShards)
	return out
}

// inherited returns the rights of a writer to shards that it has taken over.
func (t *claims) inherited(w *shardWriter) map[ShardKey]*right {
	out := map[ShardKey]*right{}
	for _, shard := range t.of(w) {
		if c := t.last[claimKey{w.group, shard}]; c.heir {
			out[shard] = &right{claim: c}
		}
	}
	return out
}
