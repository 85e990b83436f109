// SPDX-License-Identifier: Apache-2.0

package keyset

import "time"

// Outcome is the result of an attempt to fetch a set.
type Outcome[U comparable] struct {
	Source Source
	// Err is the reason why the attempt failed, or nil.
	Err error
	// Kept is set if the keys of a previous attempt remain in use.
	Kept bool
	// Users are the objects that use the set, at least one.
	Users []U
}

// outcome returns the outcome of an attempt, before its result is stored.
func (e *entry[U]) outcome(err error) Outcome[U] {
	out := Outcome[U]{Source: e.source, Err: err, Kept: err != nil && e.keys.Set != ""}
	for user := range e.users {
		out.Users = append(out.Users, user)
	}
	return out
}

// The interval between two reported failures.
const (
	shortestSilence = time.Minute
	longestSilence  = time.Hour
)

// telling decides which outcomes are reported.
type telling struct {
	// last is the time of the last reported failure, and silence the time without reports after it.
	last    time.Time
	silence time.Duration
	// failing is set if the last reported outcome is a failure.
	failing bool
}

// due reports whether an outcome is to be reported now. The silence doubles after each failure in a
// row, and returns to the shortest one after a success: a set that fails every other time is
// reported once a minute.
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
