// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "time"

// pending is the merge of requests that have not been pushed yet. The cost of a merge depends only
// on the keys of the new request. The zero value is empty.
type pending struct {
	requests                 uint64
	full, forced, everything bool
	keys                     map[ConfigKey]struct{}
	// reasons are so few that a list is faster than a map.
	reasons []reasonCount
	start   time.Time
}

type reasonCount struct {
	reason TriggerReason
	n      int
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

// take returns the merged request and empties p. A request without a reason gets ReasonUnknown.
func (p *pending) take() *PushRequest {
	if len(p.reasons) == 0 {
		p.addReason(ReasonUnknown, 1)
	}
	r := p.request()
	*p = pending{}
	return r
}

// request returns the merged request, which shares the keys: nothing may be added afterwards.
func (p *pending) request() *PushRequest {
	r := &PushRequest{Full: p.full, Forced: p.forced, ConfigsUpdated: p.keys, Start: p.start}
	if len(p.reasons) > 0 {
		r.Reason = make(map[TriggerReason]int, len(p.reasons))
	}
	for _, c := range p.reasons {
		r.Reason[c.reason] = c.n
	}
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
	for i := range p.reasons {
		if p.reasons[i].reason == reason {
			p.reasons[i].n += n
			return
		}
	}
	p.reasons = append(p.reasons, reasonCount{reason: reason, n: n})
}
