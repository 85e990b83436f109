// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"iter"

	"go.uber.org/atomic"
)

// Subscription describes a handler and its replay. Exactly one of Handle and Batch must be set.
type Subscription[T any] struct {
	// Handle is called with each value.
	Handle func(T)
	// Batch is called with all the wanted values of a batch, at least one. The
	// slice is the handler's until it returns.
	Batch func([]T)
	// Wants says which pushed values the handler is called with; nil means all.
	// It is not asked about replayed values.
	Wants func(T) bool
	// Replay yields the values that the handler gets before any later pushed value; nil means no
	// values. The worker ranges over it when it reaches the registration, and again if a handler
	// call did not return during the replay, so it must yield the same values each time: use an
	// immutable snapshot.
	Replay iter.Seq[T]
}

// subscription is a Subscription in the queue. Except for cancelled it belongs
// to the worker.
type subscription[T any] struct {
	Subscription[T]
	cancelled atomic.Bool
	// replayed counts the replayed values that were handed over.
	replayed int
	// batch collects the values of the current batch, if Batch is set.
	batch []T
}
