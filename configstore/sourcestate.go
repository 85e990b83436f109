// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Source is what fills a store or a registry, with a name: for those who show how sources are, such
// as debug pages and metrics. Make one of anything with SourceOf, or fill it for what has a
// state of another form.
type Source struct {
	// Name tells the source from others. It is the program's own word, never what comes from
	// outside.
	Name string
	// State says how the source is. It is called whenever somebody looks, maybe by several
	// goroutines at a time.
	State func() SourceState
}

// SourceStater is a source that says how it is. The sources, caches and registries of this module
// that read from elsewhere do. SourceState may be called from any goroutine and does not wait
// for the origin.
type SourceStater interface {
	SourceState() SourceState
}

// SourceOf returns a source that says how it is if it is a SourceStater, and otherwise no more
// than whether it has synced. What it wraps is not asked. A nil source panics.
func SourceOf(name string, source Syncer) Source {
	if source == nil {
		panic("configstore.SourceOf: source " + name + " is nil")
	}
	if s, ok := source.(SourceStater); ok {
		return Source{name, s.SourceState}
	}
	return Source{name, func() SourceState { return SourceState{Synced: source.HasSynced()} }}
}

// CheckSources returns an error for sources that cannot be shown together: those whose names are
// empty, equal or not valid UTF-8, and those without a State.
func CheckSources(sources []Source) error {
	var errs []error
	seen := make(map[string]bool, len(sources))
	for i, source := range sources {
		switch name := source.Name; {
		case name == "" || !utf8.ValidString(name):
			errs = append(errs, fmt.Errorf("source %d: %q is no name", i, name))
		case seen[name]:
			errs = append(errs, fmt.Errorf("two sources have the name %q", name))
		case source.State == nil:
			errs = append(errs, fmt.Errorf("source %q: State is nil", name))
		}
		seen[source.Name] = true
	}
	return errors.Join(errs...)
}

// SourceState is how a source is at one moment.
type SourceState struct {
	// Synced: the first complete content is there.
	Synced bool
	// Freshness says whether what is shown is what the origin has.
	Freshness Freshness
	// StaleSince is since when it is Stale; zero: it is not, or that is not known.
	StaleSince time.Time
	// Content is when the content that is shown was read from its origin; zero: not known.
	Content time.Time
	// Err is the last error of the source as a whole, as long as it counts; nil: there is none.
	// Its text is shown: it should have no passwords.
	Err error
	// Problems are what keeps parts of its content from being taken, and warnings.
	Problems []SourceProblem
}

// SourceProblem is what is wrong with a part of a source's content, such as an object of a file.
type SourceProblem struct {
	// Object is the object; the zero key: it is not known, or there is none.
	Object ConfigKey
	// Text says what is wrong, and where.
	Text string
	// Warning: it is taken all the same.
	Warning bool
}

// Count returns how many errors, with Err, and how many warnings there are.
func (s SourceState) Count() (errs, warnings int) {
	if s.Err != nil {
		errs++
	}
	for _, p := range s.Problems {
		if p.Warning {
			warnings++
		} else {
			errs++
		}
	}
	return errs, warnings
}

// Freshness says whether what a source shows is what its origin has.
type Freshness int

const (
	// FreshnessUnknown says that the source cannot tell, or cannot tell yet.
	FreshnessUnknown Freshness = iota
	// Fresh means that it is, as far as is known.
	Fresh
	// Stale means that it may not be.
	Stale
)

// String returns "unknown", "fresh" or "stale".
func (f Freshness) String() string {
	switch f {
	case Fresh:
		return "fresh"
	case Stale:
		return "stale"
	default:
		return "unknown"
	}
}

// FreshnessOf returns Stale or Fresh.
func FreshnessOf(stale bool) Freshness {
	if stale {
		return Stale
	}
	return Fresh
}
