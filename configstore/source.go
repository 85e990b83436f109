// SPDX-License-Identifier: Apache-2.0

package configstore

// SourceRegistrar is the optional ability of a store to wait for the sources that fill it. A source
// that writes external objects into a store, as configstore/file does, registers itself when it is
// made. Find it with As.
type SourceRegistrar interface {
	// RegisterSource makes HasSynced of the store's caches stay false until source has synced and
	// the objects that it wrote by then have been handled. Call it before the caches run, because a
	// cache that has synced stays synced. All registered sources count. HasSynced of source is
	// called with no lock held, from any goroutine.
	RegisterSource(source Syncer)
}
