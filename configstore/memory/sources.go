// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"strings"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
)

var _ configstore.SourceRegistrar = (*Store)(nil)

// sources are what fills a store. They are few and stay; readers take no lock.
type sources struct {
	list atomic.Pointer[[]configstore.Syncer]
}

func (s *sources) add(source configstore.Syncer) {
	for {
		var next []configstore.Syncer
		old := s.list.Load()
		if old != nil {
			next = slices.Clip(*old)
		}
		next = append(next, source)
		if s.list.CompareAndSwap(old, &next) {
			return
		}
	}
}

// haveSynced reports whether all of them have.
func (s *sources) haveSynced() bool {
	list := s.list.Load()
	if list == nil {
		return true
	}
	return !slices.ContainsFunc(*list, func(source configstore.Syncer) bool { return !source.HasSynced() })
}

// pending returns the names of the sources that have not synced.
func (s *sources) pending() string {
	list := s.list.Load()
	if list == nil {
		return ""
	}
	var names []string
	for _, source := range *list {
		if !source.HasSynced() {
			names = append(names, configstore.Pending(source))
		}
	}
	return strings.Join(names, ", ")
}

// RegisterSource implements configstore.SourceRegistrar, for all controllers of the store.
// A nil source panics.
func (s *Store) RegisterSource(source configstore.Syncer) {
	if source == nil {
		panic("memory: RegisterSource of a nil source")
	}
	s.sources.add(source)
}
