// SPDX-License-Identifier: Apache-2.0

package keyset

import "time"

// Outcome is what became of an attempt to fetch a set.
type Outcome[U comparable] struct {
	Source Source
	// Err is why it has failed; nil: it has not.
	Err error
	// Kept: there are keys of an attempt before, which stay.
	Kept bool
	// Users are the objects that use the set, of which there is one at least.
	Users []U
}

// outcome returns that of an attempt, before its result is taken.
func (e *entry[U]) outcome(err error) Outcome[U] {
	out := Outcome[U]{Source: e.source, Err: err, Kept: err != nil && e.keys.Set != ""}
	for user := range e.users {
		out.Users = append(out.Users, user)
	}
	return out
}

// The time from one failure that is told to the next one.
const (
	shortestSilence = time.Minute
	longestSilence  = time.Hour
)

// telling says which outcomes are told.
type telling struct {
	// last is when a failure was told, and silence how long none is from then on.
	last    time.Time
	silence time.Duration
	// failing: the last outcome that was told is a failure.
	failing bool
}

// due reports whether an outcome is to be told now. The silence is twice as long after each failure in a row, and the
// shortest one after a success: a set that fails every other time is reported once a minute.
func (t *telling) due(err error, now time.Time) bool {
	if err == nil {
		over := t.failing
		t.failing, t.silence = false, shortestSilence
		return over
	}
	if now.Sub(t.last) < t.silence {
		return false
	}
	t.last, t.failing = now, true
	t.silence = min(max(2*t.silence, shortestSilence), longestSilence)
	return true
}
