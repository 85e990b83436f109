// SPDX-License-Identifier: Apache-2.0

// Package trial finds the rejected parts of a resource by trials. NewSearch begins a search,
// Search.Without returns the parts to leave out of a trial, and Search.Answer takes its result.
package trial

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/limit"
)

// Search finds the parts that a client rejects, by trials: in each, the client is sent a resource
// made of some of the parts. It assumes that a rejected part is rejected together with any others.
// One of n parts is found with about log₂ n trials, and each further one with as many. The client
// uses the accepted resources on the way. If the likely parts are few, each of them is left out
// alone first, so that a valid part, which may be in use, is not left out.
//
// A part can be left out more or less deeply. A search begins with depth 1, and leaves parts out
// more deeply if the client rejects the resource without any of them.
type Search[T comparable] struct {
	// Depth is how deeply the parts are left out.
	Depth, deepest int
	// Good are accepted together, Bad are found. At least one of suspects is rejected with Good.
	// Later are not tested yet.
	Good, Bad, suspects, later []T
	trial                      trial
	// half is the number of suspects in a trial of them, alone the index of the suspect that is
	// left out of a trial of all others.
	half, alone int
	// accepted means that a trial was accepted.
	accepted bool
	// hinted means that the suspects are a guess.
	hinted bool
	trials int
}

// trial is the kind of a trial: the parts in it in addition to Good.
type trial uint8

const (
	ofNothing trial = iota // no other part
	ofHalf                 // of the suspects
	ofLater
	ofOthers // all but one suspect
)

// maxAlone bounds the number of likely parts that are left out alone. With more, halves are left
// out, together with the valid parts in them, for as long as a trial lasts.
const maxAlone limit.Size = 16

// maxTrials bounds the cost of a client that rejects everything: after that, all parts that it has
// not accepted count as rejected.
const maxTrials = 200

// NewSearch returns a search among parts that are rejected together. The likely parts are tried
// first. They can be left out in as many depths as deepest, which is at least 1.
func NewSearch[T comparable](parts, likely []T, deepest int) *Search[T] {
	s := &Search[T]{Depth: 1, deepest: deepest, suspects: slices.Clone(parts)}
	if guess := SetOf(likely); len(guess.of(parts)) > 0 && len(guess.of(parts)) < len(parts) {
		s.Good, s.suspects = guess.Others(parts), guess.of(parts)
		s.hinted = true
		s.guess()
		return s
	}
	s.narrow()
	return s
}

// guess chooses the first trial with hinted suspects: without one of them, or without all.
func (s *Search[T]) guess() {
	if s.trial = ofNothing; len(s.suspects) > 1 && len(s.suspects) <= maxAlone.Get() {
		s.trial, s.alone = ofOthers, 0
	}
}

// deeper begins the search again with the next depth. It reports false if there is none.
func (s *Search[T]) deeper() bool {
	if s.Depth == s.deepest {
		return false
	}
	s.Depth++
	if s.hinted {
		s.guess()
		return true
	}
	s.suspects, s.later = slices.Concat(s.Good, s.Bad, s.suspects, s.later), nil
	s.Good, s.Bad = nil, nil
	s.narrow()
	return true
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

// Answer takes the client's answer to the trial. When done is true, Bad are the parts that the
// client rejects, and it has accepted all others. hopeless means that it rejects the resource
// without any part, in every depth.
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
	case s.trial == ofNothing && s.deeper():
		return false, false
	case s.trial == ofNothing && s.hinted:
		s.Depth, s.suspects, s.Good = 1, append(s.Good, s.suspects...), nil
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
		s.trial = ofNothing // tests whether any part is the cause
		return false
	}
	s.Bad, s.suspects = append(s.Bad, s.suspects...), nil
	s.trial = ofLater
	return len(s.later) == 0
}

// Become continues the search with other parts. New parts are tested later. If a suspect has been
// removed, the remaining suspects are tested later, too, and as long as no trial was accepted if any
// part has, because a part that is not left out deeply enough is rejected in each trial.
func (s *Search[T]) Become(parts []T) {
	if s.trial == ofOthers {
		s.trial = ofNothing // the suspect may be another part now
	}
	known := SetOf(s.Good, s.Bad, s.suspects, s.later)
	fresh := slices.DeleteFunc(slices.Clone(parts), known.Has)
	still := SetOf(parts)
	suspects, good, later := still.of(s.suspects), still.of(s.Good), still.of(s.later)
	gone := len(suspects) < len(s.suspects) || !s.accepted && len(good)+len(later) < len(s.Good)+len(s.later)
	s.Good, s.Bad, s.later = good, still.of(s.Bad), append(later, fresh...)
	if gone {
		s.suspects, s.later = nil, append(suspects, s.later...)
		s.trial, s.hinted = ofLater, false
		if !s.accepted { // Good was a guess
			s.later, s.Good = append(s.Good, s.later...), nil
		}
	}
}

// Rename replaces a part by another one.
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

// SetOf returns the set of the elements of some lists.
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

// of returns the elements of a list that are in the set.
func (s Set[T]) of(list []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !s.Has(v) })
}

// Others returns the elements of a list that are not in the set.
func (s Set[T]) Others(list []T) []T { return slices.DeleteFunc(slices.Clone(list), s.Has) }
