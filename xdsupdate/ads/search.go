// SPDX-License-Identifier: Apache-2.0

package ads

import "slices"

// search finds which of several parts a client refuses, by trials: in each the client is
// sent what some of the parts make together. It assumes that what is refused is so with
// any others too. One of n parts is found with about log₂ n trials, and each more with as
// many; what the client accepts on the way it works with.
type search[T comparable] struct {
	// good are accepted together, bad are found, one of suspects at least is refused with
	// good, and of later nothing is known.
	good, bad, suspects, later []T
	trial                      trial
	// half is how many of the suspects are in a trial of them.
	half int
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
)

// maxTrials bounds what a client that refuses everything costs: after that all that it
// was not shown to accept counts as refused.
const maxTrials = 200

// newSearch returns a search of parts that are refused together, of which some, perhaps,
// are more likely than others.
func newSearch[T comparable](parts, likely []T) *search[T] {
	s := &search[T]{suspects: slices.Clone(parts)}
	if guess := setOf(likely); len(guess.of(parts)) > 0 && len(guess.of(parts)) < len(parts) {
		s.good, s.suspects = guess.others(parts), guess.of(parts)
		s.hinted = true
		return s // a trial of what is not likely
	}
	s.narrow()
	return s
}

// without returns the parts that are not in the trial.
func (s *search[T]) without() []T {
	switch s.trial {
	case ofHalf:
		return slices.Concat(s.bad, s.suspects[s.half:], s.later)
	case ofLater:
		return s.bad
	default:
		return slices.Concat(s.bad, s.suspects, s.later)
	}
}

// answer takes the client's answer to the trial. When it is done, bad are the parts that
// the client refuses, and it has accepted all others. Hopeless: it refuses even nothing.
func (s *search[T]) answer(accepted bool) (done, hopeless bool) {
	s.trials++
	s.accepted = s.accepted || accepted
	switch {
	case s.trial == ofNothing && accepted:
	case s.trial == ofNothing && s.hinted:
		s.suspects, s.good = append(s.good, s.suspects...), nil
	case s.trial == ofNothing:
		return false, true
	case s.trial == ofHalf && accepted:
		s.good, s.suspects = append(s.good, s.suspects[:s.half]...), s.suspects[s.half:]
	case s.trial == ofHalf:
		s.later = append(s.later, s.suspects[s.half:]...)
		s.suspects = s.suspects[:s.half]
	case accepted:
		s.good, s.later = append(s.good, s.later...), nil
		return true, false
	default:
		s.suspects, s.later = s.later, nil
	}
	s.hinted = false
	if s.trials >= maxTrials && s.accepted {
		s.bad, s.suspects, s.later = s.without(), nil, nil
		return true, false
	}
	return s.narrow(), false
}

// narrow chooses the next trial, and reports whether there is none.
func (s *search[T]) narrow() (done bool) {
	switch n := len(s.suspects); {
	case n > 1:
		s.trial, s.half = ofHalf, n/2
		return false
	case n == 1 && !s.accepted:
		s.trial = ofNothing // is it any of the parts?
		return false
	}
	s.bad, s.suspects = append(s.bad, s.suspects...), nil
	s.trial = ofLater
	return len(s.later) == 0
}

// become makes it a search of other parts. What is new waits, and if a suspect has gone
// nothing is known of the others.
func (s *search[T]) become(parts []T) {
	known := setOf(s.good, s.bad, s.suspects, s.later)
	fresh := slices.DeleteFunc(slices.Clone(parts), known.has)
	still := setOf(parts)
	suspects := still.of(s.suspects)
	s.good, s.bad, s.later = still.of(s.good), still.of(s.bad), append(still.of(s.later), fresh...)
	if len(suspects) < len(s.suspects) {
		s.suspects, s.later = nil, append(suspects, s.later...)
		s.trial, s.hinted = ofLater, false
		if !s.accepted { // what is good was a guess
			s.later, s.good = append(s.good, s.later...), nil
		}
	}
}

// set is a set of parts.
type set[T comparable] map[T]struct{}

func setOf[T comparable](lists ...[]T) set[T] {
	out := make(set[T])
	for _, list := range lists {
		for _, v := range list {
			out[v] = struct{}{}
		}
	}
	return out
}

func (s set[T]) has(v T) bool {
	_, ok := s[v]
	return ok
}

// of returns what of a list is in the set, others what is not.
func (s set[T]) of(list []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !s.has(v) })
}

func (s set[T]) others(list []T) []T { return slices.DeleteFunc(slices.Clone(list), s.has) }
