// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Source is a named source of a store or a registry, for displays of the sources' states such as
// debug pages and metrics. SourceOf makes one from any source; fill the struct directly for a
// source with a state of another form.
type Source struct {
	// Name distinguishes the source from others. It is chosen by the host, never taken from
	// external input.
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

// SourceOf returns a Source that reports the state of source if source is a SourceStater, and
// otherwise only whether it has synced. Wrapped sources are not considered. A nil source panics.
func SourceOf(name string, source Syncer) Source {
	if source == nil {
		panic("configstore.SourceOf: source " + name + " is nil")
	}
	if s, ok := source.(SourceStater); ok {
		return Source{name, s.SourceState}
	}
	return Source{name, func() SourceState { return SourceState{Synced: source.HasSynced()} }}
}

// CheckSources returns an error for sources that cannot be shown together: sources with an empty,
// duplicate or invalid UTF-8 name, and sources without a State.
func CheckSources(sources []Source) error {
	var errs []error
	seen := make(map[string]bool, len(sources))
	for i, source := range sources {
		switch name := source.Name; {
		case name == "" || !utf8.ValidString(name):
			errs = append(errs, fmt.Errorf("source %d: invalid source name %q", i, name))
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
	// Freshness reports whether the shown content is the current content of the origin.
	Freshness Freshness
	// StaleSince is the time since which the source is Stale. It is zero if the source is not
	// stale, or if the time is unknown.
	StaleSince time.Time
	// Content is the time when the shown content was read from its origin, zero if unknown.
	Content time.Time
	// Err is the last error of the source as a whole, nil after it has been resolved. Its text is
	// shown, so it must not contain passwords.
	Err error
	// Problems are the reasons why parts of the content were rejected, and warnings.
	Problems []SourceProblem
}

// SourceProblem describes a problem with a part of a source's content, such as an object of a file.
type SourceProblem struct {
	// Object is the object; the zero key: it is not known, or there is none.
	Object ConfigKey
	// Text describes the problem and its place.
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

// pending returns the reason why a source with this state has not synced, "" if it is not known.
func (s SourceState) pending() string {
	if s.Err != nil {
		return s.Err.Error()
	}
	for _, p := range s.Problems {
		if !p.Warning {
			return p.Text
		}
	}
	if s.Freshness != Fresh && s.StaleSince.IsZero() && s.Content.IsZero() {
		return "nothing has been read: Run has not been called, or the origin has not answered"
	}
	return ""
}

// Freshness reports whether the content that a source shows is the current content of its origin.
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
