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
		requests[i] = request{op: m.Op, config: m.Config, checked: m.Checked, given: m.Config.ResourceVersion != ""}
	}
	revision, _, err = s.commit(requests)
	return revision, err
}

var _ configstore.BatchWriter = (*Store)(nil)

// commit commits all of the requests or none. It returns the store's revision
// after it, and that of the last object.
func (s *Store) commit(requests []request) (revision uint64, last string, err error) {
	for i := range requests {
		if err := s.prepare(&requests[i]); err != nil {
			return s.Revision(), "", err
		}
	}
	if revision, last, err = s.commitPrepared(requests); err != nil {
		return revision, "", err
	}
	for i := range requests {
		s.warn(&requests[i])
	}
	return revision, last, nil
}

func (s *Store) commitPrepared(requests []request) (revision uint64, last string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan.begin(s)
	defer s.plan.end()
	for i := range requests {
		if last, err = s.plan.add(&requests[i]); err != nil {
			return s.committed.Load(), "", err
		}
	}
	s.commitLocked()
	return s.committed.Load(), last, nil
}
