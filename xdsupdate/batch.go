// SPDX-License-Identifier: Apache-2.0

package xdsupdate

// BatchUpdater is the optional ability of an XDSUpdater to take many calls as one
// update. Find it with As, or call UpdateBatch, which does.
type BatchUpdater interface {
	// UpdateBatch calls publish once, on the caller's goroutine, with a writer. The calls of the writer
	// are one update, which is applied when publish has returned, so that no push sees a part of it. A
	// registry makes its new state visible to readers in publish, before it calls the writer.
	//
	// Batches and pushes do not wait for each other. The writer must not be used after publish has
	// returned. It is an EndpointDeltaUpdater if the updater is one.
	UpdateBatch(publish func(writer XDSUpdater))
}

// UpdateBatch calls publish with the writer of a batch if the updater is, or wraps, a BatchUpdater.
// Otherwise it calls publish with the updater itself.
func UpdateBatch(updater XDSUpdater, publish func(writer XDSUpdater)) {
	if b, ok := As[BatchUpdater](updater); ok {
		b.UpdateBatch(publish)
		return
	}
	publish(Multi(updater))
}
