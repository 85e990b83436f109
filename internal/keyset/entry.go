// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"time"

	"github.com/pilotkit/pilotkit/internal/backoff"
)

// longestBackoff is the maximum backoff between attempts, unless Options.Refresh is shorter.
const longestBackoff = time.Minute

// entry is a set that is in use.
type entry[U comparable] struct {
	source Source
	// users counts the uses of each object.
	users map[U]int
	keys  Keys
	// due is the time of the next fetch.
	due     time.Time
	backoff backoff.Backoff
	telling telling
}

func newEntry[U comparable](s Source, refresh time.Duration) *entry[U] {
	return &entry[U]{
		source: s, users: make(map[U]int), keys: Keys{Err: ErrNotFetched},
		backoff: backoff.Backoff{Longest: min(longestBackoff, refresh)},
	}
}

// took stores the result of an attempt, and reports whether the set has changed.
func (e *entry[U]) took(set string, err error, now time.Time, refresh time.Duration) (changed bool) {
	if err != nil {
		e.keys.Err = err
		e.due = now.Add(e.backoff.Next())
		return false
	}
	changed = set != e.keys.Set
	e.keys = Keys{Set: set}
	e.backoff.Reset()
	e.due = now.Add(backoff.Spread(refresh, 0.1))
	return changed
}

// queue is a heap of sets, ordered by due.
type queue[U comparable] []*entry[U]

func (q queue[U]) Len() int           { return len(q) }
func (q queue[U]) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue[U]) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue[U]) Push(x any) { *q = append(*q, x.(*entry[U])) } //nolint:forcetypeassert // nothing else is pushed

// Pop implements heap.Interface.
func (q *queue[U]) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
