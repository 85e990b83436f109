// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"iter"
	"slices"
)

// A shard belongs to the youngest open writer of a group that has called for it. Ownership is checked
// when an update is applied, under the lock that orders updates. A late update of a replaced writer
// therefore has no effect, and no writer waits for another.

// stack lists the writers that an update has passed, the outermost first: one for each level of nested
// aggregates. A nil stack is an update without a writer.
type stack struct {
	writer *shardWriter
	inner  *stack
}

// open reports whether all writers are open.
func (s *stack) open() bool {
	for ; s != nil; s = s.inner {
		if s.writer.closed.Load() {
			return false
		}
	}
	return true
}

// claim is one period of ownership of a shard by a writer.
type claim struct {
	writer *shardWriter
	// heir is true if another writer owned the shard before.
	heir bool
	// last caches the last right with this claim, because most updates have the same one.
	last *right
}

// right is the list of claims with which an update wrote to a shard, one for each writer of its stack.
// A nil right belongs to an update without a writer, which has no successor.
type right struct {
	claim *claim
	inner *right
}

// succeeds reports whether r took the shard over from the writer with the right by.
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

// claims holds the last claim of each group to each shard. Its users guard it with a lock.
type claims struct{ last map[claimKey]*claim }

func newClaims() claims { return claims{last: map[claimKey]*claim{}} }

// right returns the right to write to a shard, or false if a younger writer owns it or a writer is
// closed. The first call of a writer for a shard claims it.
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

// left removes the endpoints of predecessors in the shards that a writer has taken over. It yields the services
// that lost endpoints.
func (t *claims) left(w *shardWriter, by *stack, index *EndpointIndex) iter.Seq2[ShardKey, ConfigKey] {
	return func(yield func(ShardKey, ConfigKey) bool) {
		for _, shard := range t.of(w) {
			c := t.last[claimKey{w.group, shard}]
			if _, ok := t.right(by, shard); !ok || !c.heir {
				continue
			}
			for _, key := range index.removeAll(shard, (&right{claim: c}).succeeds) {
				if !yield(shard, key) {
					return
				}
			}
		}
	}
}
