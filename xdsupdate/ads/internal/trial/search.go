// SPDX-License-Identifier: Apache-2.0

// Package trial finds out which of several parts of a resource are refused, by trials.
package trial

import (
	"slices"
)

// Search finds which of several parts a client refuses, by trials: in each the client is
// sent what some of the parts make together. It assumes that what is refused is so with
// any others too. One of n parts is found with about log₂ n trials, and each more with as
// many; what the client accepts on the way it works with. Of few likely parts each is left out
// alone first, so that a good one, which perhaps is in use, is not left out on the way if one is bad.
type Search[T comparable] struct {
	// Good are accepted together, bad are found, one of suspects at least is refused with
	// good, and of later nothing is known.
	Good, Bad, suspects, later []T
	trial                      trial
	// half is how many of the suspects are in a trial of them, alone which of them is left out
	// of a trial of all others.
	half, alone int
	// accepted: some trial was.
	accepted bool
	// hinted: suspects are a guess.
	hinted bool
	trials int
}

// trial says what is in a trial besides what is good.
type trial uint8

const (
	ofNothing trial = iota // else
	ofHalf                 // of the suspects
	ofLater
	ofOthers // than one suspect
)

// maxAlone bounds how many likely parts are left out alone: of more than that halves are left out,
// with what is good in them, for as long as a trial lasts.
const maxAlone = 16

// maxTrials bounds what a client that refuses everything costs: after that all that it
// was not shown to accept counts as refused.
const maxTrials = 200

// NewSearch returns a search of parts that are refused together, of which some, perhaps,
// are more likely than others.
func NewSearch[T comparable](parts, likely []T) *Search[T] {
	s := &Search[T]{suspects: slices.Clone(parts)}
	if guess := SetOf(likely); len(guess.of(parts)) > 0 && len(guess.of(parts)) < len(parts) {
		s.Good, s.suspects = guess.Others(parts), guess.of(parts)
		s.hinted = true
		if n := len(s.suspects); n > 1 && n <= maxAlone {
			s.trial = ofOthers
		}
		return s // else a trial of what is not likely
	}
	s.narrow()
	return s
}

// Without returns the parts that are not in the trial.
func (s *Search[T]) Without() []T {
	switch s.trial {
	case ofHalf:
		return slices.Concat(s.Bad, s.suspects[s.half:], s.later)
	case ofLater:
		return s.Bad
	case ofOthers:
		return s.suspects[s.alone : s.alone+1]
	default:
		return slices.Concat(s.Bad, s.suspects, s.later)
	}
}

// Answer takes the client's answer to the trial. When it is done, bad are the parts that
// the client refuses, and it has accepted all others. Hopeless: it refuses even nothing.
func (s *Search[T]) Answer(accepted bool) (done, hopeless bool) {
	s.trials++
	s.accepted = s.accepted || accepted
	switch {
	case s.trial == ofOthers && accepted:
		bad := s.suspects[s.alone]
		s.Good, s.Bad = append(s.Good, SetOf([]T{bad}).Others(s.suspects)...), []T{bad}
		s.suspects = nil
		return true, false
	case s.trial == ofOthers:
		if s.alone++; s.alone == len(s.suspects) {
			s.trial = ofNothing
		}
		return false, false
	case s.trial == ofNothing && accepted:
	case s.trial == ofNothing && s.hinted:
		s.suspects, s.Good = append(s.Good, s.suspects...), nil
	case s.trial == ofNothing:
		return false, true
	case s.trial == ofHalf && accepted:
		s.Good, s.suspects = append(s.Good, s.suspects[:s.half]...), s.suspects[s.half:]
	case s.trial == ofHalf:
		s.later = append(s.later, s.suspects[s.half:]...)
		s.suspects = s.suspects[:s.half]
	case accepted:
		s.Good, s.later = append(s.Good, s.later...), nil
		return true, false
	default:
		s.suspects, s.later = s.later, nil
	}
	s.hinted = false
	if s.trials >= maxTrials && s.accepted {
		s.Bad, s.suspects, s.later = s.Without(), nil, nil
		return true, false
	}
	return s.narrow(), false
}

// narrow chooses the next trial, and reports whether there is none.
func (s *Search[T]) narrow() (done bool) {
	switch n := len(s.suspects); {
	case n > 1:
		s.trial, s.half = ofHalf, n/2
		return false
	case n == 1 && !s.accepted:
		s.trial = ofNothing // is it any of the parts?
		return false
	}
	s.Bad, s.suspects = append(s.Bad, s.suspects...), nil
	s.trial = ofLater
	return len(s.later) == 0
}

// Become makes it a search of other parts. What is new waits, and if a suspect has gone, or
// one that may be the cause while suspects are a guess, nothing is known of the others.
func (s *Search[T]) Become(parts []T) {
	if s.trial == ofOthers {
		s.trial = ofNothing // who is suspected may be another one now
	}
	known := SetOf(s.Good, s.Bad, s.suspects, s.later)
	fresh := slices.DeleteFunc(slices.Clone(parts), known.Has)
	still := SetOf(parts)
	suspects, good := still.of(s.suspects), still.of(s.Good)
	gone := len(suspects) < len(s.suspects) || s.hinted && len(good) < len(s.Good)
	s.Good, s.Bad, s.later = good, still.of(s.Bad), append(still.of(s.later), fresh...)
	if gone {
		s.suspects, s.later = nil, append(suspects, s.later...)
		s.trial, s.hinted = ofLater, false
		if !s.accepted { // what is good was a guess
			s.later, s.Good = append(s.Good, s.later...), nil
		}
	}
}

// Rename has a part take the place of another one.
func (s *Search[T]) Rename(before, part T) {
	for _, list := range [][]T{s.Good, s.Bad, s.suspects, s.later} {
		for i := range list {
			if list[i] == before {
				list[i] = part
			}
		}
	}
}

// Set is a set of parts.
type Set[T comparable] map[T]struct{}

// SetOf returns the set of what is in some lists.
func SetOf[T comparable](lists ...[]T) Set[T] {
	out := make(Set[T])
	for _, list := range lists {
		for _, v := range list {
			out[v] = struct{}{}
		}
	}
	return out
}

// Has reports whether a part is in the set.
func (s Set[T]) Has(v T) bool {
	_, ok := s[v]
	return ok
}

// of returns what of a list is in the set.
func (s Set[T]) of(list []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !s.Has(v) })
}

// Others returns what of a list is not in the set.
func (s Set[T]) Others(list []T) []T { return slices.DeleteFunc(slices.Clone(list), s.Has) }
