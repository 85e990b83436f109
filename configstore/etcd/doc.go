// SPDX-License-Identifier: Apache-2.0

// Package etcd stores configs in etcd, where several processes share them: each process has a
// [Cache], a configstore.ConfigStoreCache that reads from memory and writes to etcd.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
//	…
//	cache, err := etcd.New(client, istio.Schemas(), etcd.Options{})
//	…
//	go cache.Run(stop)
//
// TLS, users and passwords are part of the client's configuration. etcd 3.4 and later are
// supported.
//
// # Keys and values
//
// An object is one key, without the version of its kind, and one value, in the JSON format of
// package manifest:
//
//	/pilotkit/networking.istio.io/VirtualService/default/reviews
//
// Percent signs, slashes and characters other than printable ASCII are written as %XX in each part
// of a key; the namespace of an object without one is empty ("/pilotkit/g/Kind//name"). The
// ResourceVersion of an object is the mod revision of its key. The value contains the other fields,
// including Generation and CreationTimestamp. A Domain that differs from the Domain of the Options
// is stored as the annotation "pilotkit.io/domain".
//
// Other programs may write values, for example etcdctl, as JSON or YAML. Each such write is an
// event, even if it changes nothing. The object's Generation is the stored one; an object without a
// creationTimestamp gets a time in 1970, in the order of create revisions. Errors reports keys and
// values that are not valid objects. They affect only that object: its last good state stays until
// the value is valid again or the key is deleted.
//
// # Writes
//
// A write is one transaction, conditional on the mod revisions on which it is based. If the
// condition fails, the write is planned again from the current values. Of all processes' concurrent
// writes with the same ResourceVersion exactly one succeeds. A batch (Apply) is one transaction,
// too, of at most Options.MaxTxnOps objects. A larger batch fails with ErrTooLarge, because etcd
// has no transaction for it. A source that fills the store, as configstore/file does, then writes
// its objects one by one, and readers see the change in steps. To avoid that, raise MaxTxnOps and
// the servers' --max-txn-ops.
//
// A write returns once this cache has the result. Other replicas receive it from their watch, at
// nearly the same time, and not before it is committed. All replicas see the same transactions in
// the same order; one transaction is one batch for readers and handlers. Several mutations of one
// object in a batch are merged into one write and one event.
//
// If etcd does not respond, a write fails with ErrUnavailable after Options.Timeout; it is then
// unknown whether it was executed. A write that fails with ErrNotShown was executed.
//
// # Reads
//
// Reads are from memory. They include all transactions up to Status().Revision and no later ones.
// One watch updates the cache. After a disconnect it resumes at its last revision. If that revision
// is compacted, or etcd has lost it, everything is listed, and the difference becomes one batch. In
// neither case is an event lost or duplicated, but after a compaction several changes of one object
// may have been merged.
//
// While etcd is unavailable, the cache keeps its state, and Status returns since when it is stale,
// and the cause. A member that is silent or has no leader counts as unavailable. A partition
// between the process and etcd is detected after twice Options.ProgressInterval.
//
// # Life cycle
//
// The life cycle is as in package configstore. Without Run the cache does not watch: before and
// after Run a write updates the cache on the caller's goroutine, and before Run so do Drain and
// Flush.
//
// # Leases
//
// Objects that must be deleted when the process that writes them ends are written with a [Lease].
//
// # Concurrency
//
// All methods may be called from any goroutine, handlers included.
package etcd
