// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "time"

// lane is requests that are debounced together.
type lane struct {
	window
	pending
	// asked and pushed count requests.
	asked, pushed uint64
}

// lanes are the requests of a Pusher. Those that are for endpoints only have a
// lane of their own, unless they are debounced like all others. A push of all
// takes the endpoints with it; the endpoints go alone.
type lanes struct {
	all, endpoints lane
	// one: everything is in all.
	one bool
}

func newLanes(quiet, longest time.Duration, mode Debounce) lanes {
	quiet, longest = max(quiet, 0), max(longest, 0)
	var l lanes
	l.one = mode == DebounceAll
	l.all.window = window{quiet: quiet, max: longest, leading: mode == DebounceAfterFirst}
	if mode != DebounceFull {
		l.endpoints.window = window{quiet: quiet, max: longest, leading: true}
	}
	return l
}

// lane returns where a request belongs.
func (l *lanes) lane(endpointsOnly bool) *lane {
	if endpointsOnly && !l.one {
		return &l.endpoints
	}
	return &l.all
}

// due returns when the next push is due, and whether anything waits.
func (l *lanes) due() (time.Duration, bool) {
	all, ok := l.all.due()
	endpoints, also := l.endpoints.due()
	switch {
	case ok && also:
		return min(all, endpoints), true
	case also:
		return endpoints, true
	default:
		return all, ok
	}
}

// take takes out what is due, and if nothing is, the endpoints. It returns how
// many requests of each lane will have been pushed with it.
func (l *lanes) take(now time.Duration) (request *PushRequest, all, endpoints uint64) {
	if due, ok := l.all.due(); !ok || due > now {
		l.endpoints.window.take(now)
		return l.endpoints.pending.take(), l.all.pushed, l.endpoints.asked
	}
	l.all.addAll(&l.endpoints.pending)
	l.all.window.take(now)
	if l.endpoints.open {
		l.endpoints.window.take(now)
	}
	return l.all.pending.take(), l.all.asked, l.endpoints.asked
}

// keepDue keeps what is due from being delayed by requests that come before it is
// taken.
func (l *lanes) keepDue(now time.Duration) {
	l.all.keepDue(now)
	l.endpoints.keepDue(now)
}

// hurry makes everything due.
func (l *lanes) hurry() {
	l.all.hurry()
	l.endpoints.hurry()
}
