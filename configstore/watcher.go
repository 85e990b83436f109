// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"context"
	"iter"
)

// Watcher is the optional ability of a store to number its changes and to
// return those after a number. A consumer that keeps a copy of the store can then
// see at each read whether the copy is current, and bring it up to date without
// waiting for events. Find it with As.
//
// To make such a copy, read Revision, then the lists, then take the changes after that revision up
// to the current Revision. The lists may already contain some of these changes. If Watch fails with
// ErrCompacted, make a new copy.
type Watcher interface {
	// Revision returns the revision of the last change that reads show, or 0 if
	// there was none. It grows with each change, by 1 or more, and never
	// decreases.
	Revision() uint64

	// Watch yields every change after a revision, of all kinds, in the order of
	// their revisions, and then waits for more until ctx ends. Changes up to
	// Revision are yielded without waiting. Without an error the loop ends only
	// with ctx or by the caller's break. If changes that are due are no longer
	// known, because from is too old or the loop's body too slow, or if the store
	// has not reached from, the last element is an error that wraps ErrCompacted:
	// there is never a gap.
	Watch(ctx context.Context, from uint64) iter.Seq2[Change, error]
}
