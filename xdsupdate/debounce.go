// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "time"

// Debounce says which requests wait for others to come, so that many changes
// make one push.
type Debounce int

const (
	// DebounceEndpointsAfterFirst pushes the first change of endpoints after a
	// quiet time at once, and delays those that follow it and every full request.
	DebounceEndpointsAfterFirst Debounce = iota
	// DebounceAfterFirst pushes the first request of any kind after a quiet time
	// at once, and delays those that follow it.
	DebounceAfterFirst
	// DebounceFull delays full requests only, as Istio 1.30 does with
	// PILOT_ENABLE_EDS_DEBOUNCE=false.
	DebounceFull
	// DebounceAll delays every request, as Istio 1.30 does by default.
	DebounceAll
)

// window decides when the requests of one kind are pushed. It is a pure state
// machine: time comes in, as the time since some moment. What it knows of the
// requests is when they came.
//
// Pushed is what has waited until nothing was asked for quiet, or for max, as in
// Istio 1.30.
type window struct {
	quiet, max time.Duration
	// leading: the first request after a quiet time does not wait.
	leading bool

	// open: something waits. first and last are when the first and the last of
	// it came; atOnce: it waits no longer.
	open, atOnce bool
	first, last  time.Duration
	// active is when something was last asked for or pushed; used: ever.
	active time.Duration
	used   bool
}

// ask notes a request. It reports whether it is the first that waits: then, and
// only then, due may have become earlier.
func (w *window) ask(now time.Duration) bool {
	opened := !w.open
	if opened {
		w.open, w.first = true, now
		w.atOnce = w.leading && (!w.used || now-w.active >= w.quiet)
	}
	// Callers read the clock before they get the lock: times may come out of
	// order.
	w.active, w.used = max(w.active, now), true
	w.last = w.active
	return opened
}

// hurry makes due what waits.
func (w *window) hurry() { w.atOnce = w.open }

// due returns when what waits has to be pushed, and whether anything waits.
func (w *window) due() (time.Duration, bool) {
	if w.atOnce {
		return w.first, w.open
	}
	return min(w.last+w.quiet, w.first+w.max), w.open
}

// keepDue keeps what is due now from being delayed by what comes next.
func (w *window) keepDue(now time.Duration) {
	if due, ok := w.due(); ok && due <= now {
		w.atOnce = true
	}
}

// take notes that what waits is pushed now.
func (w *window) take(now time.Duration) {
	w.open, w.atOnce = false, false
	w.active, w.used = max(w.active, now), true
}
