// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/checkpoint"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/registry/bridge"
)

// Source is what fills a store or a registry. The functions below make those of this library; a
// host fills it for others.
type Source struct {
	// Name tells the source from others.
	Name string
	// State says how the source is. It is called when a page needs it, maybe by several requests
	// at a time. If it panics the page says so in place of the state.
	State func() SourceState
}

// SourceState is how a source is at one moment.
type SourceState struct {
	// Synced: the first complete content is there.
	Synced bool
	// Stale: what is shown may not be what the origin has; since StaleSince, if that is known.
	Stale      bool
	StaleSince time.Time
	// Content is when the content that is shown was read from its origin; zero: not known.
	Content time.Time
	// Err is the last error of the source as a whole, as long as it counts; nil: there is none.
	// Its text is shown: it should have no passwords.
	Err error
	// Problems are what keeps parts of its content from being taken, and warnings.
	Problems []Problem
}

// Problem is what is wrong with a part of a source's content, such as an object of a file.
type Problem struct {
	// Object is the object, whose page shows the problem; the zero key: it is not known, or
	// there is none.
	Object configstore.ConfigKey
	// Text says what is wrong, and where.
	Text string
	// Warning: it is taken all the same.
	Warning bool
}

// SyncedSource is a cache, a registry, or whatever says no more than whether it has synced.
func SyncedSource(name string, source configstore.Syncer) Source {
	return Source{name, func() SourceState { return SourceState{Synced: source.HasSynced()} }}
}

// Reporter is what lists its errors. E is how it does.
type Reporter[E error] interface {
	configstore.Syncer
	Errors() []E
}

// ReportingSource is a source that lists its errors, and maybe its warnings, in the same form: the caches
// of configstore/kube and the registries of registry/kube do.
func ReportingSource[E error](name string, source Reporter[E]) Source {
	return Source{name, func() SourceState {
		s := SourceState{Synced: source.HasSynced()}
		for _, err := range source.Errors() {
			s.Problems = append(s.Problems, Problem{Text: err.Error()})
		}
		if w, ok := source.(interface{ Warnings() []E }); ok {
			for _, warning := range w.Warnings() {
				s.Problems = append(s.Problems, Problem{Text: warning.Error(), Warning: true})
			}
		}
		return s
	}}
}

// FileSource is a directory, with its Report.
func FileSource(name string, source *file.Source) Source {
	return Source{name, func() SourceState {
		s, report := SourceState{Synced: source.HasSynced()}, source.Report()
		for _, err := range report.Errors {
			s.Problems = append(s.Problems, Problem{Object: err.Object, Text: err.Error()})
		}
		for _, warning := range report.Warnings {
			s.Problems = append(s.Problems, Problem{Object: warning.Object, Text: warning.Error(), Warning: true})
		}
		return s
	}}
}

// BridgeSource is a foreign catalogue, with its Status. Content is the time of the last list that was taken.
func BridgeSource(name string, source *bridge.Bridge) Source {
	return Source{name, func() SourceState {
		status := source.Status()
		s := SourceState{
			Synced: source.HasSynced(), Stale: status.Stale(), StaleSince: status.StaleSince, Content: status.Listed, Err: status.Err,
		}
		for _, d := range status.Defects {
			s.Problems = append(s.Problems, Problem{Text: d.Error()})
		}
		return s
	}}
}

// CheckpointSource is the last content of a cache on disk. It is stale until the cache has synced; until then Content
// is when the file was written.
func CheckpointSource(name string, source *checkpoint.Cache) Source {
	return Source{name, func() SourceState {
		synced, status := source.HasSynced(), source.Status()
		s := SourceState{Synced: synced, Stale: status.Stale, Err: status.Err}
		if status.Stale {
			s.Content = status.Written
		}
		if status.Refused != nil {
			s.Problems = append(s.Problems, Problem{Text: status.Refused.Error(), Warning: synced})
		}
		return s
	}}
}

// checkSources panics for sources that New does not take.
func checkSources(sources []Source) {
	seen := make(map[string]bool, len(sources))
	for i, s := range sources {
		switch {
		case s.Name == "":
			panic(fmt.Sprintf("debug.New: source %d has no name", i))
		case seen[s.Name]:
			panic(fmt.Sprintf("debug.New: two sources have the name %q", s.Name))
		case s.State == nil:
			panic(fmt.Sprintf("debug.New: source %q: State is nil", s.Name))
		}
		seen[s.Name] = true
	}
}
