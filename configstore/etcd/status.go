// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"log/slog"
	"time"
)

// Status is the state of a Cache.
type Status struct {
	// Stale is set while the cache does not read from etcd, so that the published state may be
	// outdated: etcd is unavailable, or Run does not run.
	Stale bool
	// Since, if Stale, is the time of etcd's last response, or zero if it never responded.
	Since time.Time
	// Err, if Stale, is the error of the last attempt to read, or nil if there was no attempt.
	Err error
	// Revision is the etcd revision of the published state, which includes all changes below the
	// prefix up to it. It is 0 before the first read.
	Revision int64
}

// feedState is the state of the connection to etcd.
type feedState struct {
	live  bool
	heard time.Time
	err   error
}

// Status returns the state of the cache.
func (c *Cache) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Stale: !c.feed.live, Revision: c.shown}
	if s.Stale {
		s.Since, s.Err = c.feed.heard, c.feed.err
	}
	return s
}

// heard records a response of etcd.
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

// lost records that the cache does not read from etcd at present. err is nil if Run ends.
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

// show records the published revision, and wakes the calls that wait for it.
func (c *Cache) show(revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown, c.listed = revision, true
	c.wakeLocked()
}

// setRunning records whether Run reads.
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

// progress returns the published revision, whether Run reads, and a channel that is closed when one
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
