// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

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

// pending describes the sources that have not synced.
func (s *sources) pending() string {
	if list := s.list.Load(); list != nil {
		return configstore.Pending(*list...)
	}
	return ""
}

// RegisterSource implements configstore.SourceRegistrar, for all controllers of the store.
// A nil source panics.
func (s *Store) RegisterSource(source configstore.Syncer) {
	if source == nil {
		panic("memory: RegisterSource of a nil source")
	}
	s.sources.add(source)
}
