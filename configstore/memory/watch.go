// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"iter"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/limit"
)

// watchChunk is how many changes a watch takes from the history at a time.
const watchChunk limit.Size = 64

// Watch yields every change after a revision, of all kinds, in the order of the
// revisions, which are consecutive, and then waits for more until ctx ends. To
// follow the store from a state that is known, read a Snapshot and watch from its
// Revision.
//
// If the history no longer goes back to a change that is due, because from is too
// old or because the loop's body is too slow, or if from is a revision that the
// store has not reached, the last element is an error that wraps ErrCompacted.
// Without an error the loop ends only with ctx or by the caller's break.
//
// A slow loop delays neither writers nor other watches.
func (s *Store) Watch(ctx context.Context, from uint64) iter.Seq2[configstore.Change, error] {
	return func(yield func(configstore.Change, error) bool) {
		if from > s.Revision() {
			yield(configstore.Change{}, compacted(from))
			return
		}
		last := from
		buf := make([]configstore.Change, 0, watchChunk.Get())
		for ctx.Err() == nil {
			changes, more, ok := s.history.after(last, buf)
			if !ok {
				yield(configstore.Change{}, compacted(last))
				return
			}
			for _, c := range changes {
				if ctx.Err() != nil || !yield(c, nil) {
					return
				}
				last = c.Revision
			}
			if more == nil {
				continue
			}
			clear(buf[:cap(buf)]) // no object is kept alive by waiting
			select {
			case <-ctx.Done():
			case <-more:
			}
		}
	}
}

func compacted(from uint64) error {
	return fmt.Errorf("watch from revision %d: %w", from, configstore.ErrCompacted)
}
