// SPDX-License-Identifier: Apache-2.0

package file

import (
	"os"
	"path"
	"runtime"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/regularfile"
)

// result is the result of one pass over a file.
type result struct {
	// content replaces the previous content of the file, nil if it has not changed. gone and added
	// are the definitions that the replacement removes and adds.
	content     *content
	gone, added []*definition
	// again means that the file looked unfinished.
	again bool
}

// suspects returns the names of the listed files that may have changed.
func (s *Source) suspects(sc scan) []string {
	var names []string
	for name, info := range s.listing.files {
		if old := s.contents[name]; old == nil || sc.full || sc.dirty[name] || !old.unchanged(info) {
			names = append(names, name)
		}
	}
	return names
}

// narrow returns the files that notifications were about, and whether these are
// all there is to look at: so it is if files were written, but neither removed
// nor linked, in directories that have been read without errors and without links to files.
func (s *Source) narrow(sc scan) ([]string, bool) {
	l := s.listing
	if sc.full || sc.walk || s.rootFailure != nil || len(l.failed) > 0 || l.linked {
		return nil, false
	}
	var names []string
	for name := range sc.dirty {
		info, err := os.Lstat(s.path(name))
		_, listed := l.dirs[path.Dir(name)]
		switch {
		case listed && err == nil && info.Mode().IsRegular() && isManifest(name):
			names = append(names, name)
		case listed && (os.IsNotExist(err) || err == nil && info.Mode().IsRegular()) && !s.knows(name):
			// The entry is not a file of this source, or it existed for a moment only.
		default:
			return nil, false
		}
	}
	return names, true
}

// look examines files, several at a time: reading YAML is what most of the time
// goes into.
func (s *Source) look(names []string, sc scan, now time.Time) []result {
	results := make([]result, len(names))
	var next atomic.Int64
	examine := func() {
		for i := next.Inc() - 1; int(i) < len(names); i = next.Inc() - 1 {
			results[i] = s.tryExamine(names[i], sc, now)
		}
	}
	var helpers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) - 1 {
		helpers.Go(examine)
	}
	examine()
	helpers.Wait()
	return results
}

// tryExamine is examine, which may panic: the schemas are the program's. That is an error
// of the file.
func (s *Source) tryExamine(name string, sc scan, now time.Time) (r result) {
	if p := guard.Call(func() { r = s.examine(name, sc, now) }); p != nil {
		return s.unreadable(name, p, s.contents[name])
	}
	return r
}

// examine reads one file. It may run concurrently with itself for other files.
func (s *Source) examine(name string, sc scan, now time.Time) result {
	old := s.contents[name]
	data, info, err := regularfile.Read(s.path(name), s.opts.MaxFileBytes)
	if err != nil {
		return s.unreadable(name, err, old)
	}
	if len(data) == 0 && old != nil && old.hasObjects() && !sc.final {
		// An editor that writes in place empties the file first.
		if old.emptied.IsZero() {
			old.emptied = now
		}
		if now.Sub(old.emptied) < s.completion {
			return result{again: true}
		}
	}
	texts, err := manifest.Texts(s.schemas, data, s.opts.manifest())
	if err != nil {
		return s.unreadable(name, err, old)
	}
	sums := hash(texts)
	if old != nil && old.holds(sums) {
		old.stamp(info)
		return result{}
	}
	return s.parse(name, texts, sums, info, old)
}
