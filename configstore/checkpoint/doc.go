// SPDX-License-Identifier: Apache-2.0

// Package checkpoint keeps the last content of a cache of configs in a file, so that a
// control plane that starts while its sources are down serves what it had:
//
//	cache := checkpoint.New(source, "/var/lib/pilot/configs", checkpoint.Options{})
//	…            // use cache wherever source would be used
//	cache.Run(stop)
//
// # Warm start
//
// New loads the file. Until the wrapped cache has synced, the content of the file is what
// readers see and handlers get, as additions, and HasSynced is true; Status says that it
// is stale, and how old. When the wrapped cache has synced, what differs goes out as one
// batch: updates, deletions, additions. From then on the cache shows what the wrapped one
// tells, each of its batches as a batch.
//
// Objects are compared with all of their metadata. Those of a source that gives them
// other resource versions, or creation times, after each start are updates then, which
// change nothing for proxies.
//
// Without a file the cache is empty until the wrapped one has synced, and so has it.
//
// # The file
//
// It is written, if something has changed, every Options.Interval, when Run ends, and by
// Save; never before the wrapped cache has synced. Neither readers nor writers wait: what
// is written is a snapshot. The file is replaced in one step, after what is written has
// reached the disk, so that a process that is killed, or a machine that stops, at any
// moment, leaves the last complete file. Two processes must not share one.
//
// It has a magic number, a version and a checksum. A file that is damaged, truncated, of
// something else, of a later version, or with a kind that the cache does not have, is
// refused as a whole: Status has the error, nothing of it is loaded, and it is replaced
// when the wrapped cache has synced. It holds everything that the configs hold, and is
// readable for its owner only.
//
// # Writes
//
// Create, Update, UpdateStatus and Delete go to the wrapped cache, with its errors. They
// show when its event has come back; Flush waits for that.
//
// # Life cycle and concurrency
//
// Run runs the wrapped cache, too, which nobody else may run. Drain and Flush drive both,
// if the wrapped cache can be driven. When Run has ended, Get and List are those of the
// wrapped cache, if that has synced. Otherwise everything is as package configstore says.
package checkpoint
