// SPDX-License-Identifier: Apache-2.0

package xdsupdate

// BatchUpdater is the optional ability of an XDSUpdater to take many calls as one
// update. Find it with As, or call UpdateBatch, which does.
type BatchUpdater interface {
	// UpdateBatch calls publish once, on the caller's goroutine, with a writer. What publish
	// calls on the writer is one update, which is applied when publish has returned: no
	// push has a part of it. A registry makes its new state visible to its readers in
	// publish, before it calls the writer.
	//
	// Nobody waits for a batch, and a batch waits for nobody. The writer is of no use when
	// publish has returned. It takes deltas (EndpointDeltaUpdater) if the updater does.
	UpdateBatch(publish func(writer XDSUpdater))
}

// UpdateBatch calls publish with a writer of which all calls are one update, if the updater,
// or what it wraps, is a BatchUpdater, and otherwise with the updater.
func UpdateBatch(updater XDSUpdater, publish func(writer XDSUpdater)) {
	if b, ok := As[BatchUpdater](updater); ok {
		b.UpdateBatch(publish)
		return
	}
	publish(Multi(updater))
}
