// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// An object that a client rejects is tried again when it changes. An object that changes all the
// time would in this way keep the changes of others from the client: each of its states is rejected
// together with them, and a search among outdated states never ends. So after a few changes, new
// states of such an object replace the old ones without a trial, and the last of them is tried
// after a pause.

// restless counts the changes of an object that a client rejects, or may reject.
type restless struct {
	times int
	last  time.Time
	// due is when its state is tried; zero if it has been.
	due time.Time
}

const (
	// triedAtOnce is how many changes are tried at once, if no more than calm is between two of them.
	triedAtOnce = 4
	calm        = 10 * time.Second
	// The pauses after further changes grow from firstPause to lastPause.
	firstPause, lastPause = 50 * time.Millisecond, 8 * time.Second
)

// become records the contributions to a new state of the resource. It returns when one of them has
// to be tried, or zero.
func (q *quarantine) become(parts []Contribution, now time.Time) (due time.Time) {
	old, next := byObject(q.parts), byObject(parts)
	for object, c := range next {
		before, known := old[object]
		if !known || before == c || !q.omits(before) && q.search == nil {
			continue
		}
		if r := q.changed(object, now); r.times > triedAtOnce {
			r.due = now.Add(min(firstPause<<min(r.times-triedAtOnce-1, 16), lastPause))
			q.rename(before, c)
			due = r.due
		}
	}
	q.parts = parts
	return due
}

// byObject returns the last contribution of each object.
func byObject(parts []Contribution) map[configstore.ConfigKey]Contribution {
	out := make(map[configstore.ConfigKey]Contribution, len(parts))
	for _, c := range parts {
		out[c.Object] = c
	}
	return out
}

// changed counts a change of an object.
func (q *quarantine) changed(object configstore.ConfigKey, now time.Time) *restless {
	r := q.restless[object]
	if r == nil || now.Sub(r.last) > calm {
		r = &restless{}
	}
	r.times, r.last = r.times+1, now
	q.restless[object] = r
	return r
}

// rename has a contribution take the place of another one of its object.
func (q *quarantine) rename(before, c Contribution) {
	if r, left := q.left[before]; left {
		delete(q.left, before)
		q.left[c] = r
	}
	for i := range q.good {
		if q.good[i] == before {
			q.good[i] = c
		}
	}
	if q.search != nil {
		q.search.Rename(before, c)
	}
}

// retry tries the states that are due, and returns when the next one is due, or zero if no other
// state waits.
func (q *quarantine) retry(now time.Time) (next time.Time, tries bool) {
	for object, r := range q.restless {
		switch {
		case r.due.IsZero() || q.search != nil: // after the search
		case r.due.After(now):
			if next.IsZero() || r.due.Before(next) {
				next = r.due
			}
		default:
			r.due = time.Time{}
			for c := range q.left {
				if c.Object == object {
					delete(q.left, c)
					q.made, tries = nil, true
				}
			}
		}
	}
	return next, tries
}

// retryDue has rejected resources and contributions tried that have waited.
func (l *rejections) retryDue(now time.Time) {
	if l == nil {
		return
	}
	if !l.retryAt.IsZero() && !l.retryAt.After(now) {
		l.tryAgain(now)
	}
	l.conn.wakeAt(l.retryAt)
	if !l.isolates() {
		return
	}
	for _, r := range l.byName {
		if r.search == nil {
			continue
		}
		next, tries := r.search.retry(now)
		if tries {
			l.own.target = nil
		}
		l.conn.wakeAt(next)
	}
}
