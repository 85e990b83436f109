// SPDX-License-Identifier: Apache-2.0

// Package loglimit limits repeated log messages.
package loglimit

import (
	"strings"
	"sync"
	"time"
)

const (
	// interval is the time within which equal messages are logged once.
	interval = time.Minute
	// maxKeys is how many different things of all groups are logged in that time.
	maxKeys = 100
	// maxKey is how much of a key counts.
	maxKey = 512
)

// Limiter says what should be logged. The zero value works; its methods may be called
// from any goroutine.
type Limiter struct {
	mu   sync.Mutex
	last map[entry]time.Time
	// oldest is a lower bound of the times in last, computed at the last cleanup.
	oldest time.Time
}

// entry is a key. The key "" stands for all keys of a group beyond the limit.
type entry struct{ group, key string }

// Allow reports whether a message with a key, which is not "", should be logged now, because no
// message of the key was logged within the last minute. When a hundred keys were logged in that
// time, messages of other keys are allowed once a minute for each group, so there should be few
// groups. Long keys are truncated.
func (l *Limiter) Allow(key, group string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, e := time.Now(), entry{group, strings.Clone(key[:min(len(key), maxKey)])}
	if l.within(e, now) {
		return false
	}
	if _, known := l.last[e]; !known && len(l.last) >= maxKeys {
		l.forget(now)
		if len(l.last) >= maxKeys {
			e.key = ""
		}
	}
	if l.within(e, now) {
		return false
	}
	if l.last == nil {
		l.last = make(map[entry]time.Time)
	}
	l.last[e] = now
	return true
}

// within reports whether something was logged within the interval.
func (l *Limiter) within(e entry, now time.Time) bool {
	at, known := l.last[e]
	return known && now.Sub(at) < interval
}

// forget drops the entries that have expired. It costs nothing while there is none.
func (l *Limiter) forget(now time.Time) {
	if now.Sub(l.oldest) < interval {
		return
	}
	l.oldest = now
	for e, at := range l.last {
		switch {
		case !l.within(e, now):
			delete(l.last, e)
		case at.Before(l.oldest):
			l.oldest = at
		}
	}
}
