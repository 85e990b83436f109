// SPDX-License-Identifier: Apache-2.0

// Package checkpoint keeps the last content of a cache of configs in a file, so that a control
// plane that starts while its sources are down serves its last content:
//
//	cache := checkpoint.New(source, "/var/lib/pilot/configs", checkpoint.Options{})
//	…            // use cache wherever source would be used
//	cache.Run(stop)
//
// # Warm start
//
// New loads the file. Until the wrapped cache has synced, readers see the content of the file,
// handlers get it as additions, and HasSynced is true; Status reports that it is stale, and its
// age. When the wrapped cache has synced, the difference is delivered as one batch: updates,
// deletions, additions. From then on the cache shows the changes of the wrapped cache, each of its
// batches as a batch.
//
// Objects are compared with all of their metadata. If a source assigns other resource versions, or
// creation times, after each start, its objects are therefore delivered as updates, which change
// nothing for proxies.
//
// Without a file the cache is empty, and has not synced, until the wrapped one has synced.
//
// # The file
//
// The file is written every Options.Interval if the content has changed, when Run ends, and by
// Save; never before the wrapped cache has synced. Neither readers nor writers wait, because the
// written content is a snapshot. The file is replaced in one step, after its bytes have reached the
// disk, so that a process that is killed, or a machine that stops, at any moment, leaves the last
// complete file. Two processes must not share a file.
//
// The file has a magic number, a version and a checksum. A file that is damaged, truncated,
// foreign, of a later version, or with a kind that the cache does not have, is rejected as a whole:
// Status has the error, its content is ignored, and it is replaced when the wrapped cache has
// synced. The file contains the full content of the configs, and is readable for its owner only.
//
// # Writes
//
// Create, Update, UpdateStatus and Delete go to the wrapped cache, with its errors. Reads see a
// write when its event has come back; Flush waits for that.
//
// # Life cycle and concurrency
//
// Run also runs the wrapped cache, which must not be run by anything else. Drain and Flush drive
// both, if the wrapped cache can be driven. When Run has ended, Get and List read the wrapped cache
// if it has synced. Otherwise the contract is that of package configstore.
package checkpoint
