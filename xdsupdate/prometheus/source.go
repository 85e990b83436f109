// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/checkpoint"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/registry/bridge"
)

// Source is a source of configs or services, for NewSourceCollector. The functions below
// make those of this library; a host fills it for others.
type Source struct {
	// Name tells the source from others. It is the value of the label source: the host's
	// own word, never what comes from outside.
	Name string
	// State says how the source is. It is called by each scrape, maybe by several at a
	// time. If it panics the scrape has an error in place of the source's metrics.
	State func() SourceState
}

// SourceState is how a source is at one moment. What is nil is not known, and there is
// no metric of it.
type SourceState struct {
	// Synced: the first complete content is there.
	Synced bool
	// Stale: what is shown may not be what the origin has.
	Stale *bool
	// Content is when the content that is shown was read from its origin; zero: not known.
	Content time.Time
	// Errors counts what keeps content, or parts of it, from being taken, Warnings what is
	// taken and questionable.
	Errors, Warnings *int
}

// SyncedSource is a cache, a registry, or whatever says no more than whether it has
// synced.
func SyncedSource(name string, source configstore.Syncer) Source {
	return Source{name, func() SourceState { return SourceState{Synced: source.HasSynced()} }}
}

// Reporter is what lists its errors. E is how it does.
type Reporter[E any] interface {
	configstore.Syncer
	Errors() []E
}

// ReportingSource is a source that lists its errors, and maybe its warnings, in the same
// form: the caches of configstore/kube and the registries of registry/kube do.
func ReportingSource[E any](name string, source Reporter[E]) Source {
	return Source{name, func() SourceState {
		s := SourceState{Synced: source.HasSynced(), Errors: new(len(source.Errors()))}
		if w, ok := source.(interface{ Warnings() []E }); ok {
			s.Warnings = new(len(w.Warnings()))
		}
		return s
	}}
}

// FileSource is a directory. Errors and Warnings are those of its Report.
func FileSource(name string, source *file.Source) Source {
	return Source{name, func() SourceState {
		report := source.Report()
		return SourceState{
			Synced: source.HasSynced(), Errors: new(len(report.Errors)), Warnings: new(len(report.Warnings)),
		}
	}}
}

// BridgeSource is a foreign catalogue. Errors counts the defects of its records, and one
// more if it cannot be listed or watched, or its list is held back. Content is the time of the
// last list that was taken.
func BridgeSource(name string, source *bridge.Bridge) Source {
	return Source{name, func() SourceState {
		status := source.Status()
		return SourceState{
			Synced: source.HasSynced(), Stale: new(status.Stale()), Content: status.Listed,
			Errors: new(len(status.Defects) + truth(status.Err != nil)),
		}
	}}
}

// CheckpointSource is the last content of a cache on disk. It is stale until the cache has
// synced; as long as it is, Content is when the file was written, and unknown afterwards,
// for then what is shown is the cache's. It has an error while the file cannot be written, and
// if a file was refused and nothing is shown in its place yet.
func CheckpointSource(name string, source *checkpoint.Cache) Source {
	return Source{name, func() SourceState {
		synced, status := source.HasSynced(), source.Status()
		s := SourceState{
			Synced: synced, Stale: new(status.Stale),
			Errors: new(truth(status.Err != nil) + truth(status.Refused != nil && !synced)),
		}
		if status.Stale {
			s.Content = status.Written
		}
		return s
	}}
}
