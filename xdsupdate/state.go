// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "time"

// PusherState is a snapshot of a Pusher's state, for diagnostics.
type PusherState struct {
	// Running is true between the begin and the end of Run. Otherwise only Flush pushes.
	Running bool
	// Pushing is the begin of the running push, or zero.
	Pushing time.Time
	// Full are the pending full requests or, with Debounce.Endpoints, all pending requests.
	// Endpoints are the pending requests for endpoints only.
	Full, Endpoints WaitingRequests
	// Retry is the time of a push of everything after a failed push, or zero.
	Retry time.Time
	// Pushes counts the finished pushes, and Failed the ones with a panic in Capture or push. Last
	// is the last finished push, or zero.
	Pushes, Failed uint64
	Last           FinishedPush
	// DebounceAfter, DebounceMax and EndpointInterval are the effective values of Debounce.
	DebounceAfter, DebounceMax, EndpointInterval time.Duration
}

// WaitingRequests are requests that are being merged until they are pushed as one.
type WaitingRequests struct {
	// Requests is their number. If it is 0, the other fields are zero.
	Requests uint64
	// Everything is true if one of them has no keys. Otherwise Keys is the number of distinct keys.
	Everything bool
	Keys       int
	// Since is the time of the first request. Due is the time of the push, without further requests
	// or a running push.
	Since, Due time.Time
}

// FinishedPush is a push that has ended.
type FinishedPush struct {
	// Full, Forced and Everything are fields of the request, Keys is the number of its keys, and
	// Reason, which must not be modified, its causes.
	Full, Forced, Everything bool
	Keys                     int
	Reason                   map[TriggerReason]int
	// Ended is the end of the push, and Took its duration.
	Ended time.Time
	Took  time.Duration
	// Failed is true if Capture or push panicked.
	Failed bool
}

// State returns the state of the Pusher. The cost is constant.
func (p *Pusher) State() PusherState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PusherState{
		Running: p.running, Full: p.waitingLocked(&p.all), Endpoints: p.waitingLocked(&p.endpoints),
		Pushes: p.finished.pushes, Failed: p.finished.failed, Last: p.finished.last,
		DebounceAfter: max(p.opts.Debounce.After, 0), DebounceMax: max(p.opts.Debounce.Max, 0),
		EndpointInterval: max(p.opts.Debounce.EndpointInterval, 0),
	}
	if p.pushing {
		s.Pushing = p.epoch.Add(p.finished.began)
	}
	if p.retry.waiting {
		s.Retry = p.epoch.Add(p.retry.at)
	}
	return s
}

func (p *Pusher) waitingLocked(l *lane) WaitingRequests {
	if l.requests == 0 {
		return WaitingRequests{}
	}
	return WaitingRequests{
		Requests: l.requests, Everything: l.everything, Keys: len(l.keys), Since: l.start, Due: p.epoch.Add(l.due()),
	}
}

// finished is the record of finished pushes. The Pusher's mu guards it.
type finished struct {
	pushes, failed uint64
	last           FinishedPush
	// began is when the push began that is running, or was the last.
	began time.Duration
}

// end records the end of a push. It does not keep the keys of the request.
func (f *finished) end(request *PushRequest, now time.Time, took time.Duration, failed bool) {
	f.pushes++
	if failed {
		f.failed++
	}
	f.last = FinishedPush{Ended: now, Took: took, Failed: failed}
	if request != nil { // else it failed before it had one
		f.last.Full, f.last.Forced, f.last.Everything = request.Full, request.Forced, request.Everything()
		f.last.Keys, f.last.Reason = len(request.ConfigsUpdated), request.Reason
	}
}
