// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// Fetch returns what is at a URI. It must return when ctx ends.
type Fetch func(ctx context.Context, uri string) ([]byte, error)

// Options for New. All are set. U identifies what uses a set.
type Options[U comparable] struct {
	Fetch Fetch
	// MaxBytes is how long an answer may be.
	MaxBytes int
	// Refresh is how often a set is fetched again.
	Refresh time.Duration
	// Changed is told which objects use sets that have changed.
	Changed func(users map[U]struct{})
	// Failed is called with attempts that have failed, of one set less and less often; and, with an Outcome without Err, of the
	// first that has not after it.
	Failed func(Outcome[U])
}

// parallel is how many sets are fetched at a time.
const parallel = 16

// ErrNotFetched is the error of a set that was not fetched yet.
var ErrNotFetched = errors.New("the keys were not fetched yet")

// Keys are the state of a set.
type Keys struct {
	// Set is the newest that could be fetched; empty: none could.
	Set string
	// Err is why the last attempt has failed, or ErrNotFetched; nil: it has not.
	Err error
}

// Cache is the sets that are in use.
type Cache[U comparable] struct {
	options Options[U]
	wake    chan struct{}

	mu      sync.Mutex
	entries map[Source]*entry[U]
	// waiting are those that are not being fetched, the next one first; some may not be in use any more.
	waiting queue[U]
	// fetching is how many are being fetched.
	fetching int
	// changed are the users of the sets that have changed since Options.Changed was called.
	changed map[U]struct{}
	// outcomes are those that Options.Failed is to be told.
	outcomes []Outcome[U]
}

// New returns an empty cache. Nothing is fetched before Run.
func New[U comparable](o Options[U]) *Cache[U] {
	return &Cache[U]{
		options: o, wake: make(chan struct{}, 1), entries: make(map[Source]*entry[U]), changed: make(map[U]struct{}),
	}
}

// Get returns the state of a set.
func (c *Cache[U]) Get(s Source) Keys {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[s]; e != nil {
		return e.keys
	}
	return Keys{Err: ErrNotFetched}
}

// Synced reports whether each set that is in use was fetched, or could not be.
func (c *Cache[U]) Synced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if errors.Is(e.keys.Err, ErrNotFetched) {
			return false
		}
	}
	return true
}

// Retain says that an object uses a set, which is fetched from then on until Release was called as often.
func (c *Cache[U]) Retain(s Source, user U) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[s]
	if e == nil {
		e = newEntry[U](s, c.options.Refresh)
		c.entries[s] = e
		heap.Push(&c.waiting, e)
		c.wakeUp()
	}
	e.users[user]++
}

// Release takes back one Retain.
func (c *Cache[U]) Release(s Source, user U) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[s]
	if e == nil {
		return
	}
	if e.users[user]--; e.users[user] <= 0 {
		delete(e.users, user)
	}
	if len(e.users) == 0 {
		delete(c.entries, s)
	}
}

// wakeUp has Run look at what there is to do.
func (c *Cache[U]) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run fetches sets until stop is closed, and returns when everything that it started has ended.
func (c *Cache[U]) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // it ends with stop
	var fetches sync.WaitGroup
	defer fetches.Wait()
	defer cancel()
	timer := time.NewTimer(c.options.Refresh)
	defer timer.Stop()
	for {
		due, next := c.take(time.Now())
		for _, e := range due {
			fetches.Go(func() { c.refresh(ctx, e) })
		}
		timer.Reset(next)
		select {
		case <-stop:
			return
		case <-c.wake:
		case <-timer.C:
		}
		users, outcomes := c.takeNews()
		if len(users) > 0 {
			c.options.Changed(users)
		}
		for _, o := range outcomes {
			c.options.Failed(o)
		}
	}
}

// take returns the sets to be fetched now, as many as there is room for, and the time until others are due.
func (c *Cache[U]) take(now time.Time) (due []*entry[U], next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) > 0 && c.fetching < parallel {
		e := c.waiting[0]
		used := c.entries[e.source] == e
		if used && e.due.After(now) {
			return due, e.due.Sub(now)
		}
		heap.Pop(&c.waiting)
		if used {
			c.fetching++
			due = append(due, e)
		}
	}
	return due, c.options.Refresh
}

// refresh fetches a set.
func (c *Cache[U]) refresh(ctx context.Context, e *entry[U]) {
	var set string
	var err error
	if panicked := guard.Call(func() { set, err = e.source.fetch(ctx, c.options.Fetch, c.options.MaxBytes) }); panicked != nil {
		err = panicked
	}
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wakeUp()
	c.fetching--
	if c.entries[e.source] != e {
		return
	}
	now := time.Now()
	if e.telling.due(err, now) {
		c.outcomes = append(c.outcomes, e.outcome(err))
	}
	if e.took(set, err, now, c.options.Refresh) {
		for user := range e.users {
			c.changed[user] = struct{}{}
		}
	}
	heap.Push(&c.waiting, e)
}

// takeNews returns what the functions of the options are to be told.
func (c *Cache[U]) takeNews() (users map[U]struct{}, outcomes []Outcome[U]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	users, outcomes = c.changed, c.outcomes
	c.changed, c.outcomes = make(map[U]struct{}), nil
	return users, outcomes
}
