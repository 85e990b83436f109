// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "time"

// PusherState is what a Pusher is at, at one moment: for people who look at it.
type PusherState struct {
	// Running: Run has begun and is not over. Without it nothing is pushed but by Flush.
	Running bool
	// Pushing is since when a push is running; zero: none is.
	Pushing time.Time
	// Full is what waits of full requests, or, with DebounceEndpoints, of all. Endpoints is what
	// waits of requests for endpoints only.
	Full, Endpoints WaitingRequests
	// Retry is when a push of everything makes up for one that failed; zero: none is due.
	Retry time.Time
	// Pushes counts those that have ended, Failed those of them that failed: the push, or what
	// it was to read, panicked. Last is the last of them; zero: there was none.
	Pushes, Failed uint64
	Last           FinishedPush
	// DebounceAfter, DebounceMax and EndpointInterval are those of PusherOptions that count.
	DebounceAfter, DebounceMax, EndpointInterval time.Duration
}

// WaitingRequests are requests that are being merged until they are pushed as one.
type WaitingRequests struct {
	// Requests is how many there are; 0: none, and the other fields are zero.
	Requests uint64
	// Everything: one of them names no keys. Otherwise Keys is how many they name.
	Everything bool
	Keys       int
	// Since is when the first of them was made, and Due when they are pushed if no other one
	// comes, and no push is running then.
	Since, Due time.Time
}

// FinishedPush is a push that has ended.
type FinishedPush struct {
	// Full, Forced and Everything are those of its request, Keys is how many keys that named,
	// and Reason, which must not be modified, why it was made.
	Full, Forced, Everything bool
	Keys                     int
	Reason                   map[TriggerReason]int
	// Ended is when it ended, Took how long it took.
	Ended time.Time
	Took  time.Duration
	// Failed: it, or what it was to read, panicked.
	Failed bool
}

// State returns what the Pusher is at. It costs the same whatever waits.
func (p *Pusher) State() PusherState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PusherState{
		Running: p.running, Full: p.waitingLocked(&p.all), Endpoints: p.waitingLocked(&p.endpoints),
		Pushes: p.finished.pushes, Failed: p.finished.failed, Last: p.finished.last,
		DebounceAfter: max(p.opts.DebounceAfter, 0), DebounceMax: max(p.opts.DebounceMax, 0),
		EndpointInterval: max(p.opts.EndpointInterval, 0),
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
	due, open := l.due()
	if !open || l.requests == 0 {
		return WaitingRequests{}
	}
	return WaitingRequests{
		Requests: l.requests, Everything: l.everything, Keys: len(l.keys), Since: l.start, Due: p.epoch.Add(due),
	}
}

// finished is what is known of the pushes that have ended. It is guarded by the Pusher's mu.
type finished struct {
	pushes, failed uint64
	last           FinishedPush
	// began is when the push began that is running, or was the last.
	began time.Duration
}

// end notes the end of a push. It keeps nothing of the request that grows with what it names.
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
