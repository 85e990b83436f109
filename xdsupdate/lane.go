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

// ask notes that a request was added to pending. A request that does not say when
// it was made was made now.
func (l *lane) ask(now time.Duration, epoch time.Time) (opened bool) {
	l.asked++
	if l.start.IsZero() {
		l.start = epoch.Add(now)
	}
	return l.window.ask(now)
}

// lanes are the requests of a Pusher. Requests for endpoints only have a separate lane, so that
// they neither wait for full requests nor delay them. A push of the lane all includes the
// endpoints, because its root has them anyway. A push of the lane endpoints includes only them.
type lanes struct {
	all, endpoints lane
	// one means that all requests use the lane all.
	one bool
}

func newLanes(d Debounce) lanes {
	l := lanes{one: d.Endpoints}
	l.all.window = newWindow(d.After, d.Max, 0, d.LeadingEdge)
	l.endpoints.window = newWindow(0, 0, d.EndpointInterval, false)
	return l
}

// lane returns where a request belongs.
func (l *lanes) lane(endpointsOnly bool) *lane {
	if endpointsOnly && !l.one {
		return &l.endpoints
	}
	return &l.all
}

// due returns when the next push is due, or forever if nothing waits.
func (l *lanes) due() time.Duration { return min(l.all.due(), l.endpoints.due()) }

// fix selects the requests due at a time for the next take.
func (l *lanes) fix(until time.Duration) {
	l.all.fix(until)
	l.endpoints.fix(until)
}

// some reports whether take would take a request.
func (l *lanes) some() bool { return l.endpoints.requests > 0 || l.all.atOnce && l.all.requests > 0 }

// take removes and returns the due requests, after fix. It also returns the number of pushed
// requests of each lane, including them.
func (l *lanes) take(now time.Duration) (request *PushRequest, all, endpoints uint64) {
	if !l.all.atOnce {
		l.endpoints.window.take(now)
		return l.endpoints.pending.take(), l.all.pushed, l.endpoints.asked
	}
	if l.endpoints.requests > 0 {
		l.all.add(l.endpoints.request())
		l.endpoints.pending = pending{}
	}
	l.all.window.take(now)
	if l.endpoints.open {
		l.endpoints.window.take(now)
	}
	return l.all.pending.take(), l.all.asked, l.endpoints.asked
}
