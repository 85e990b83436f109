// SPDX-License-Identifier: Apache-2.0

package configstore

// SourceRegistrar is the ability of a store to know what fills it. Whoever writes what
// comes from elsewhere into a store, as configstore/file does, registers itself when it
// is made. Find it with As.
type SourceRegistrar interface {
	// RegisterSource has HasSynced of the caches of the store stay false until source
	// has synced, and what it had written by then has been handled. It is to be
	// called before the caches run: one that has synced stays so. Of several sources all
	// count. HasSynced of source is called with no lock held, from any goroutine.
	RegisterSource(source Syncer)
}
