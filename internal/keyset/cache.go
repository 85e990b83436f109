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

// Fetch returns the content of a URI. It must return when ctx ends.
type Fetch func(ctx context.Context, uri string) ([]byte, error)

// Options are the options of New. All fields must be set. U identifies a user of a set.
type Options[U comparable] struct {
	Fetch Fetch
	// MaxBytes is the maximum size of a response.
	MaxBytes int
	// Refresh is the interval between two fetches of a set.
	Refresh time.Duration
	// Changed is called with the users of sets that have changed.
	Changed func(users map[U]struct{})
	// Failed is called with failed attempts, for one set with increasing intervals, and, with an
	// Outcome without Err, for the first success after them.
	Failed func(Outcome[U])
}

// parallel is the maximum number of concurrent fetches.
const parallel = 16

// ErrNotFetched is the error of a set that was not fetched yet.
var ErrNotFetched = errors.New("the keys were not fetched yet")

// Keys are the state of a set.
type Keys struct {
	// Set is the latest fetched set, or "" if no attempt has succeeded.
	Set string
	// Err is the error of the last attempt, or ErrNotFetched, or nil if the last attempt succeeded.
	Err error
}

// Cache contains the sets that are in use.
type Cache[U comparable] struct {
	options Options[U]
	wake    chan struct{}

	mu      sync.Mutex
	entries map[Source]*entry[U]
	// waiting are the sets that are not being fetched, the next one first. Some may not be in use
	// any more.
	waiting queue[U]
	// fetching is the number of fetches in progress.
	fetching int
	// changed are the users of the sets that have changed since the last call of Options.Changed.
	changed map[U]struct{}
	// outcomes are the pending outcomes for Options.Failed.
	outcomes []Outcome[U]
}

// New returns an empty cache. It fetches nothing before Run.
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

// Synced reports whether each set in use was fetched, or an attempt has failed.
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

// Retain records that an object uses a set. The set is fetched until Release was called as often as
// Retain.
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

// Release reverses one call of Retain.
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

// wakeUp makes Run check the sets.
func (c *Cache[U]) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run fetches sets until stop is closed. All goroutines that it started have ended when it returns.
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

// take returns the sets to be fetched now, as far as parallel allows, and the time until the next
// one is due.
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

// takeNews returns the pending arguments for Options.Changed and Options.Failed.
func (c *Cache[U]) takeNews() (users map[U]struct{}, outcomes []Outcome[U]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	users, outcomes = c.changed, c.outcomes
	c.changed, c.outcomes = make(map[U]struct{}), nil
	return users, outcomes
}
