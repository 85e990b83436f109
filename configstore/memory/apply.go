// SPDX-License-Identifier: Apache-2.0

package memory

import "github.com/pilotkit/pilotkit/configstore"

// Apply commits a batch, all or nothing, and returns the store's revision after
// it. Each mutation sees the effects of those before it and gets a revision of
// its own, unless it changes nothing; readers see none or all of them; their
// events follow each other without another in between. An object may occur more
// than once. The error is that of the first mutation that is not possible.
func (s *Store) Apply(mutations ...configstore.Mutation) (revision uint64, err error) {
	requests := make([]request, len(mutations))
	for i, m := range mutations {
		requests[i] = request{op: m.Op, config: m.Config, given: m.Config.ResourceVersion != ""}
		if err := s.prepare(&requests[i]); err != nil {
			return s.Revision(), err
		}
	}
	if revision, err = s.commitAll(requests); err != nil {
		return revision, err
	}
	for i := range requests {
		s.warn(&requests[i])
	}
	return revision, nil
}

var _ configstore.BatchWriter = (*Store)(nil)

func (s *Store) commitAll(requests []request) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan.begin(s)
	defer s.plan.end()
	for i := range requests {
		if _, err := s.plan.add(&requests[i]); err != nil {
			return s.committed.Load(), err
		}
	}
	s.commitLocked()
	return s.committed.Load(), nil
}
