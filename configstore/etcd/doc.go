// SPDX-License-Identifier: Apache-2.0

// Package etcd keeps configs in etcd, where several processes share them: each has a
// [Cache], a configstore.ConfigStoreCache that reads from memory and writes to etcd.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
//	…
//	cache, err := etcd.New(client, istio.Schemas(), etcd.Options{})
//	…
//	go cache.Run(stop)
//
// TLS, users and passwords are the client's configuration. It works with etcd 3.4 and later.
//
// # Keys and values
//
// An object is one key, without the version of its kind, and one value, in the JSON form
// of package manifest:
//
//	/pilotkit/networking.istio.io/VirtualService/default/reviews
//
// In each part of a key the percent sign, the slash and what is no printable ASCII
// character are written as %XX; the namespace of an object without one is empty
// ("/pilotkit/g/Kind//name"). The ResourceVersion of an object is the mod revision of its
// key. What the object has besides is in the value: Generation and CreationTimestamp too,
// and a Domain that is not that of the Options, as the annotation "pilotkit.io/domain".
//
// Values may be written by others, with etcdctl for example, as JSON or YAML. Such a write
// is an event, whatever it changes. Its Generation is what it says; without a
// creationTimestamp the object is as old as 1970, in the order of create revisions. A key or
// a value that is no valid object is reported by Errors and costs that object only: its last
// good state stays until the value is good again or the key is deleted.
//
// # Writes
//
// A write is one transaction, on the condition that what it was decided upon is what etcd
// has; if it is not, it is decided again. So of all processes' concurrent writes with the same
// ResourceVersion exactly one succeeds. A batch (Apply) is one transaction, too, of as many
// objects as Options.MaxTxnOps allows. A larger one is refused with ErrTooLarge, because etcd
// has no transaction for it: a source that fills the store, as configstore/file does, then writes
// its objects one by one, so that readers see such a change in steps. Raise MaxTxnOps and the
// servers' --max-txn-ops where that matters.
//
// A write returns when this cache shows it. Other replicas show it when their watch tells
// them, at nearly the same time, and not before it is committed. All see the same
// transactions in the same order; one transaction is one batch for readers and handlers. Of
// several mutations of one object in a batch only what they amount to is written, and is an
// event.
//
// Without an answer of etcd a write fails after Options.Timeout, with ErrUnavailable; then it
// is not known whether it was executed. With ErrNotShown it was.
//
// # Reads
//
// Reads are from memory. They show all transactions up to Status().Revision and none after
// it. One watch feeds them. When it breaks, it goes on where it was; if what is missing is
// compacted, or etcd has lost it, everything is listed, and the difference is one batch. In
// neither case is an event lost or doubled, but after a compaction several changes of one object
// may have become one.
//
// While etcd is away the last state stays, and Status says since when it is stale, and why.
// A member that keeps silent, or has no leader, counts as away. A partition that separates
// the process from etcd is seen after twice Options.ProgressInterval.
//
// # Life cycle
//
// It is that of package configstore. Without Run nothing is read by itself: before and after
// it a write brings the cache up to date on the caller's goroutine, and before it so do
// Drain and Flush.
//
// # Leases
//
// Objects that must vanish with the process that writes them are written through a
// [Lease].
//
// # Concurrency
//
// All methods may be called from any goroutine, handlers included.
package etcd
