// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

var _ configstore.SourceRegistrar = (*Store)(nil)

// sources are what fills a store. They are few and stay.
type sources struct {
	mu   sync.Mutex
	list []configstore.Syncer
}

func (s *sources) add(source configstore.Syncer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(slices.Clip(s.list), source)
}

func (s *sources) all() []configstore.Syncer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// haveSynced reports whether all of them have.
func (s *sources) haveSynced() bool {
	return !slices.ContainsFunc(s.all(), func(source configstore.Syncer) bool { return !source.HasSynced() })
}

// RegisterSource implements configstore.SourceRegistrar, for all controllers of the store.
// A nil source panics.
func (s *Store) RegisterSource(source configstore.Syncer) {
	if source == nil {
		panic("memory: RegisterSource of a nil source")
	}
	s.sources.add(source)
}
