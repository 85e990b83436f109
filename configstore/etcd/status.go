// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"log/slog"
	"time"
)

// Status is how a Cache is at one moment.
type Status struct {
	// Stale: nothing is read from etcd at present, so that what is shown may be out of
	// date: etcd is away, or Run does not run.
	Stale bool
	// Since is the last moment at which etcd was heard of if Stale; zero: it was never.
	Since time.Time
	// Err is why the last attempt to read failed, if Stale; nil: there was none.
	Err error
	// Revision is the revision of etcd that is shown. All changes below the prefix up to it
	// are in; 0: nothing was read.
	Revision int64
}

// feedState is what is known of the connection to etcd.
type feedState struct {
	live  bool
	heard time.Time
	err   error
}

// Status returns how the cache is.
func (c *Cache) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Stale: !c.feed.live, Revision: c.shown}
	if s.Stale {
		s.Since, s.Err = c.feed.heard, c.feed.err
	}
	return s
}

// heard notes that etcd has answered.
func (c *Cache) heard() {
	now := time.Now()
	c.mu.Lock()
	before := c.feed
	c.feed = feedState{live: c.running, heard: now}
	c.mu.Unlock()
	if before.err != nil {
		c.opts.Logger.Info("etcd is back", slog.Time("stale_since", before.heard))
	}
}

// lost notes that nothing is read from etcd any more; nil: because Run ends.
func (c *Cache) lost(err error) {
	c.mu.Lock()
	before := c.feed
	c.feed.live, c.feed.err = false, err
	revision := c.shown
	c.mu.Unlock()
	if before.err == nil && err != nil {
		c.opts.Logger.Warn("etcd is away: the last state stays", slog.Int64("revision", revision), slog.Any("error", err))
	}
}

// show notes the revision that is published, and wakes those that wait for it.
func (c *Cache) show(revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown, c.listed = revision, true
	c.wakeLocked()
}

// setRunning notes whether Run reads.
func (c *Cache) setRunning(running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = running
	c.wakeLocked()
}

func (c *Cache) wakeLocked() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// progress returns what is shown, whether Run reads, and a channel that is closed when one
// of them changes.
func (c *Cache) progress() (shown int64, running bool, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.shown, c.running, c.changed
}

func (c *Cache) shownRevision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}
