// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"math"
	"time"
)

// window decides when the requests of one lane are pushed. It is a pure state machine: its only
// inputs are the times of requests and the current time, relative to a fixed moment.
//
// A push is due when no request has arrived for quiet, or when the first pending request has waited
// for max, as in Istio 1.30, but not before interval has passed since the previous push. Full
// requests have a quiet time, because related objects are often written in several steps and a push
// of them is expensive. Requests for endpoints have an interval instead, because with a quiet time,
// a stream of changes to any service would delay each of them by up to max.
type window struct {
	quiet, max, interval time.Duration
	// leading: the first request after a quiet time does not wait.
	leading bool

	// open means that a request is pending. first and last are the times of its first and last
	// request; last stays set after take. atOnce means that a push is due regardless of later
	// requests.
	open, atOnce bool
	first, last  time.Duration
	// by is the latest time at which a push is due.
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

// hurry makes the pending requests due at a time at the latest. It reports whether due has become
// earlier.
func (w *window) hurry(by time.Duration) (earlier bool) {
	before := w.due()
	w.by = min(w.by, by)
	return w.due() < before
}

// due returns when the pending requests must be pushed, or forever if there are none.
func (w *window) due() time.Duration {
	switch {
	case !w.open:
		return forever
	case w.atOnce:
		return w.first
	default:
		return max(min(w.last+w.quiet, w.first+w.max, w.by), w.pushed+w.interval)
	}
}

// fix selects the requests due at a time for the next push. Later requests do not delay them.
func (w *window) fix(until time.Duration) {
	if w.open && w.due() <= until {
		w.atOnce = true
	}
}

// take records that the pending requests are being pushed.
func (w *window) take(now time.Duration) {
	w.open, w.atOnce, w.by = false, false, forever
	w.pushed = now
}
