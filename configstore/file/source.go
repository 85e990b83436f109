// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Source keeps the objects of a directory in a store. Create it with New; the
// package comment states its rules.
type Source struct {
	dir     string
	store   configstore.ConfigStore
	schemas configstore.Schemas
	opts    Options
	// completion is the constant of this name, except in tests.
	completion time.Duration

	ran atomic.Bool
	// loaded is set when the directory has been read once.
	loaded atomic.Bool
	begun  atomic.Bool // the directory has been looked at

	// turn is held by the reload in progress, which owns the fields of this
	// block. It is a channel and no mutex because a reload calls the store and
	// the logger, and no code of others is called with a lock held.
	turn     chan struct{}
	contents map[string]*content
	index    index
	owned    map[configstore.ConfigKey]commit.Owned
	// retry holds the objects that the store has refused for reasons that may
	// go away by themselves.
	retry map[configstore.ConfigKey]*Error
	// listing is the result of the last walk.
	listing listing
	// rootFailure is set while the directory cannot be read, rootBack is when it
	// could be read again, or another one was found in its place.
	rootFailure error
	rootBack    time.Time
	// watcher is nil unless Run runs.
	watcher *watcher

	mu     sync.Mutex
	report Report
	last   look
}

// New returns a source that keeps the objects of the files in dir in a store. It
// reads nothing yet: Reload and Run do. Several sources, and other writers, may
// write to one store. If the store is a configstore.SourceRegistrar, as that of memory is, its
// caches have not synced before this source has: it must be run, or reloaded.
func New(dir string, store configstore.ConfigStore, opts ...Options) *Source {
	o := options.One("file.New", opts)
	s := &Source{
		dir: dir, store: store, schemas: store.Schemas(), opts: o.withDefaults(), completion: completion,
		turn:     make(chan struct{}, 1),
		contents: map[string]*content{},
		index:    newIndex(),
		owned:    map[configstore.ConfigKey]commit.Owned{},
		retry:    map[configstore.ConfigKey]*Error{},
	}
	if caches, ok := configstore.As[configstore.SourceRegistrar](store); ok {
		caches.RegisterSource(s)
	}
	return s
}

// Reload reads every file and brings the store up to date. When it returns, the store holds the
// content that the directory had. An error means that the directory as a whole cannot be read, and
// that nothing has changed; errors of its parts are in Errors of the Report. Reload may be called with
// or without Run, from any goroutine except one that a write to the store waits for. Concurrent
// calls take turns.
func (s *Source) Reload() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	_, err := s.load(scan{full: true, final: true})
	return err
}

// HasSynced reports whether the directory has been read to its end at least
// once and the store holds what could be read. It may hold more to come if
// Errors is not empty.
func (s *Source) HasSynced() bool { return s.loaded.Load() }

// Pending implements configstore.PendingSyncer.
func (s *Source) Pending() string {
	if !s.begun.Load() {
		return "neither Run nor Reload has been called"
	}
	if errs := s.Errors(); !s.HasSynced() && len(errs) > 0 {
		return errs[0].Error()
	}
	return ""
}

// Report returns the current errors and warnings of the directory. The caller may modify the
// slices, not the errors.
func (s *Source) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	r.Errors, r.Warnings = slices.Clone(r.Errors), slices.Clone(r.Warnings)
	return r
}

// Errors returns the Errors of the Report.
func (s *Source) Errors() []*Error { return s.Report().Errors }

// path returns a name with the directory as the program wrote it.
func (s *Source) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// scan says how to look at the directory.
type scan struct {
	// full makes the scan read every file. Otherwise it reads the files with changed times or
	// sizes.
	full bool
	// dirty are the names that notifications were about. They are looked at in
	// any case, and alone if that is enough.
	dirty map[string]bool
	// walk means that more than the dirty names has to be looked at.
	walk bool
	// final makes the scan accept the current state as complete, even if it looks unfinished.
	final bool
}

// load brings the store up to date. It reports whether it should be called
// again because something looked unfinished.
func (s *Source) load(sc scan) (again bool, err error) {
	s.begun.Store(true)
	now := time.Now()
	dirty := map[configstore.ConfigKey]struct{}{}
	names, narrow := s.narrow(sc)
	if !narrow {
		if err := s.walk(now); err != nil {
			s.publish(now)
			return false, err
		}
		names = s.suspects(sc)
		again = s.forget(sc, now, dirty)
	}
	results := s.look(names, sc, now)
	for _, r := range results {
		again = again || r.again
		s.replace(r, dirty)
	}
	for key := range s.retry {
		dirty[key] = struct{}{}
	}
	s.apply(dirty)
	for _, r := range results {
		for _, c := range r.added {
			c.checked = nil
		}
	}
	s.publish(now)
	s.loaded.Store(true)
	return again, nil
}

// walk lists the directory.
func (s *Source) walk(now time.Time) error {
	before := s.listing.dirs["."]
	l, err := s.list()
	s.listing = l
	if err != nil {
		s.rootFailure = fmt.Errorf("read %s: %w", s.dir, withoutPath(err))
		return s.rootFailure
	}
	lost := before != nil && !os.SameFile(before, l.dirs["."])
	if s.watcher != nil {
		lost = lost || s.watcher.rootLost
		s.watcher.rootLost = false
	}
	if lost || s.rootFailure != nil {
		s.rootFailure, s.rootBack = nil, now
	}
	return nil
}

// forget drops the files that are gone.
func (s *Source) forget(sc scan, now time.Time, dirty map[configstore.ConfigKey]struct{}) (again bool) {
	for name, c := range s.contents {
		if _, ok := s.listing.files[name]; ok {
			continue
		}
		switch {
		case !s.listing.missing(name):
			if !c.unseen() {
				s.replace(s.unreadable(name, nil, c), dirty)
			}
		case !sc.final && now.Sub(s.rootBack) < s.completion:
			again = true
		default:
			delete(s.contents, name)
			s.index.change(c.definitions(), nil, dirty)
		}
	}
	return again
}

// list walks through the directory, and sees to it that all of it is watched.
func (s *Source) list() (listing, error) {
	if s.watcher == nil {
		return list(s.dir, func(string, fs.FileInfo) {}, s.knows)
	}
	for {
		s.watcher.begin()
		l, err := list(s.dir, s.watcher.add, s.knows)
		if s.watcher.end() {
			return l, err
		}
	}
}

// replace replaces the content of a file. It adds the keys of all affected objects to dirty.
func (s *Source) replace(r result, dirty map[configstore.ConfigKey]struct{}) {
	if r.content != nil {
		s.contents[r.content.file.name] = r.content
		s.index.change(r.gone, r.added, dirty)
	}
}

// knows reports whether files at or below a path have been loaded.
func (s *Source) knows(name string) bool {
	for known := range s.contents {
		if known == name || len(known) > len(name) && known[:len(name)] == name && known[len(name)] == '/' {
			return true
		}
	}
	return false
}
