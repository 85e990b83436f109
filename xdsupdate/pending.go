// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"maps"
	"time"
)

// pending is the merge of requests that were not pushed yet. It says the same as
// PushRequest.Merge, at a cost that does not grow with what is pending. The zero
// value is empty.
type pending struct {
	requests                 uint64
	full, forced, everything bool
	keys                     map[ConfigKey]struct{}
	reasons                  map[TriggerReason]int
	start                    time.Time
}

// add merges a request, which it does not keep.
func (p *pending) add(r *PushRequest) {
	p.requests++
	p.forced = p.forced || r.Forced
	p.full = p.full || r.Full || r.Forced
	p.start = earlier(p.start, r.Start)
	for reason, n := range r.Reason {
		p.addReason(reason, n)
	}
	if r.Everything() {
		p.everything, p.keys = true, nil
	}
	for key := range r.ConfigsUpdated {
		p.addKey(key)
	}
}

// addOne merges a request for one key.
func (p *pending) addOne(key ConfigKey, full bool, reason TriggerReason) {
	p.requests++
	p.full = p.full || full
	p.addReason(reason, 1)
	p.addKey(key)
}

// take returns what was merged as one request, and becomes empty. A request
// without a reason gets UnknownUpdate.
func (p *pending) take() *PushRequest {
	r := &PushRequest{
		Full: p.full, Forced: p.forced, ConfigsUpdated: p.keys, Reason: p.reasons, Start: p.start,
	}
	if len(r.Reason) == 0 {
		r.Reason = map[TriggerReason]int{UnknownUpdate: 1}
	}
	*p = pending{}
	return r
}

func (p *pending) addKey(key ConfigKey) {
	if p.everything {
		return
	}
	if p.keys == nil {
		p.keys = map[ConfigKey]struct{}{}
	}
	p.keys[key] = struct{}{}
}

func (p *pending) addReason(reason TriggerReason, n int) {
	if p.reasons == nil {
		p.reasons = map[TriggerReason]int{}
	}
	p.reasons[reason] += n
}

// addAll moves what is pending in q to p.
func (p *pending) addAll(q *pending) {
	if q.requests == 0 {
		return
	}
	if p.requests == 0 {
		*p, *q = *q, pending{}
		return
	}
	p.requests += q.requests
	p.forced, p.full = p.forced || q.forced, p.full || q.full
	p.start = earlier(p.start, q.start)
	for reason, n := range q.reasons {
		p.addReason(reason, n)
	}
	if p.everything = p.everything || q.everything; p.everything {
		p.keys = nil
	} else {
		maps.Copy(p.keys, q.keys)
	}
	*q = pending{}
}
