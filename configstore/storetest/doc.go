// SPDX-License-Identifier: Apache-2.0

// Package storetest proves that a store keeps the promises of package
// configstore. TestStore runs on any ConfigStore, TestCache on any
// ConfigStoreCache; call both for a cache:
//
//	func TestMyStore(t *testing.T) {
//		factory := func(tb testing.TB, schemas configstore.Schemas) storetest.Subject {
//			return storetest.Subject{Store: mystore.New(schemas)}
//		}
//		storetest.TestStore(t, factory)
//		storetest.TestCache(t, factory)
//	}
//
// Each promise is a subtest with a store of its own, so that one broken promise
// does not hide another. A failure names the promise and where it is made.
//
// # Optional abilities
//
// Optional abilities of the store are found with configstore.As, or declared in Subject:
//
//   - configstore.Watcher, BatchWriter, Subscriber, Drainer and Flusher.
//   - Subject.CatchUp: reads lag behind writes.
//   - Subject.Writer: the store itself is read-only.
//
// # Recorder
//
// Recorder is an event handler that remembers its calls. It is of use in
// the tests of anything that feeds from a cache.
//
// # Concurrency
//
// A Recorder may be used from any goroutine. The suites start goroutines and
// have joined them when they return.
package storetest
