// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strconv"

	"github.com/pilotkit/pilotkit/configstore"
)

// Op is what a Mutation does.
type Op int

// The operations of a ConfigStore. The zero value is none of them.
const (
	OpCreate Op = iota + 1
	OpUpdate
	OpUpdateStatus
	OpDelete
)

// String returns the verb that begins the operation's errors: "create",
// "update", "update status of" or "delete".
func (o Op) String() string {
	switch o {
	case OpCreate:
		return "create"
	case OpUpdate:
		return "update"
	case OpUpdateStatus:
		return "update status of"
	case OpDelete:
		return "delete"
	default:
		return "Op(" + strconv.Itoa(int(o)) + ")"
	}
}

// Mutation is one change of a batch.
type Mutation struct {
	Op Op
	// Config is the argument of the ConfigStore method of that name. For OpDelete
	// only its key and, unless empty, its ResourceVersion count.
	Config configstore.Config
}

// Apply commits a batch, all or nothing, and returns the store's revision after
// it. Each mutation sees the effects of those before it and gets a revision of
// its own, unless it changes nothing; readers see none or all of them; their
// events follow each other without another in between. An object may occur more
// than once. The error is that of the first mutation that is not possible.
func (s *Store) Apply(mutations ...Mutation) (revision uint64, err error) {
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
