// SPDX-License-Identifier: Apache-2.0

package configstore

import "context"

// Drainer is the ability to work without Run, on the caller's goroutine: for
// hosts and tests that want no goroutine. The package comment has the life cycle.
type Drainer interface {
	// Drain handles the events of all changes that were committed before the call, and the events that
	// handlers cause meanwhile, and returns when the queue is empty. While another goroutine
	// delivers, and in a handler, Drain returns without handling events: the goroutine that delivers
	// empties the queue. To wait for a running worker use Flush.
	Drain()
}

// Flusher is the ability to wait until changes have been handled. The package
// comment has the life cycle.
type Flusher interface {
	// Flush returns nil when everything that was committed before the call has
	// been handled: by the running worker, or, if there is none, by Flush itself,
	// as by Drain. Otherwise it returns the cause of ctx's end if that comes
	// first, or an error if Run has ended. A handler must not call it: it would
	// wait for itself.
	Flush(ctx context.Context) error
}
