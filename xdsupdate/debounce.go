// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"math"
	"time"
)

// window decides when the requests of one lane are pushed. It is a pure state
// machine: time comes in, as the time since some moment, and all that it knows of
// the requests is when they came.
//
// A push is due when no request has come for quiet, or when the first that waits
// has waited for max, as in Istio 1.30; and not before interval has passed since
// the push before it. Full requests have a quiet time, because what belongs
// together is often written in several steps, and a push of it is expensive.
// Requests for endpoints have an interval instead: a quiet time would let a
// stream of changes anywhere delay each of them by up to max.
type window struct {
	quiet, max, interval time.Duration
	// leading: the first request after a quiet time does not wait.
	leading bool

	// open: something waits. first and last are when the first and the last of
	// it came; last is kept when it is taken. atOnce: it is due, whatever comes.
	open, atOnce bool
	first, last  time.Duration
	// by is when it is due at the latest.
	by time.Duration
	// pushed is when something was last taken.
	pushed time.Duration
}

// longAgo is before every request, and far enough from the least value that
// differences do not overflow; forever is after every request.
const (
	longAgo time.Duration = math.MinInt64 / 2
	forever time.Duration = math.MaxInt64
)

func newWindow(quiet, longest, interval time.Duration, leading bool) window {
	return window{
		quiet: max(quiet, 0), max: max(longest, 0), interval: max(interval, 0), leading: leading,
		last: longAgo, pushed: longAgo, by: forever,
	}
}

// ask notes a request. It reports whether it is the first that waits: then, and
// only then, due may have become earlier.
func (w *window) ask(now time.Duration) (opened bool) {
	if opened = !w.open; opened {
		w.open, w.first = true, now
		w.atOnce = w.leading && now-max(w.last, w.pushed) >= w.quiet
	}
	// Callers read the clock before they get the lock: times may come out of
	// order.
	w.last = max(w.last, now)
	return opened
}

// hurry has what waits be due at a time at the latest. It reports whether due has become
// earlier.
func (w *window) hurry(by time.Duration) (earlier bool) {
	before, _ := w.due()
	w.by = min(w.by, by)
	after, _ := w.due()
	return after < before
}

// due returns when what waits has to be pushed, and whether anything waits.
func (w *window) due() (time.Duration, bool) {
	if w.atOnce {
		return w.first, w.open
	}
	return max(min(w.last+w.quiet, w.first+w.max, w.by), w.pushed+w.interval), w.open
}

// fix decides that what is due at a time is pushed next: requests that come
// before it is taken do not delay it.
func (w *window) fix(until time.Duration) {
	if due, ok := w.due(); ok && due <= until {
		w.atOnce = true
	}
}

// take notes that what waits is pushed now.
func (w *window) take(now time.Duration) {
	w.open, w.atOnce, w.by = false, false, forever
	w.pushed = now
}
