// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// Subject is one fresh, empty store and what the suite may ask of it.
type Subject struct {
	// Store is what is tested. TestCache needs a configstore.ConfigStoreCache
	// that was not run yet.
	Store configstore.ConfigStore

	// Writer takes the suite's writes if Store is a read-only view of something
	// else. The suite then leaves out what concerns writing and demands that
	// Store refuses every write with ErrReadOnly. Default: Store.
	Writer configstore.ConfigStore

	// Settle returns when the reads of Store show everything that was written
	// before the call. Set it if reads lag behind writes. Default: they do not.
	Settle func()

	// Batches takes the suite's batches. Default: the one of Writer and Store
	// that takes its writes, if it is a configstore.BatchWriter; else none does.
	Batches configstore.BatchWriter

	// History is the number of changes that Watch can go back. Set it to have
	// ErrCompacted checked. Default: 0, not checked.
	History int

	// Timeout is how long the suite waits for something that must happen before
	// it calls it lost or deadlocked. Default: 10 s.
	Timeout time.Duration
}

// Factory makes a Subject that keeps the kinds of schemas and validates with
// them. It is called once for each promise; t.Cleanup ends what it started.
type Factory func(tb testing.TB, schemas configstore.Schemas) Subject

// TestStore proves the promises of configstore.ConfigStore.
func TestStore(t *testing.T, factory Factory) {
	t.Helper()
	runAll(t, factory, storeChecks())
}

// TestCache proves what configstore.ConfigStoreCache promises beyond a
// ConfigStore: its events and its life. Run TestStore as well.
func TestCache(t *testing.T, factory Factory) {
	t.Helper()
	runAll(t, factory, cacheChecks())
}

func storeChecks() []check {
	return concat(readChecks(), createChecks(), updateChecks(), statusChecks(), deleteChecks(), ownershipChecks(),
		concurrencyChecks(), revisionChecks(), batchChecks(), watchChecks(), readOnlyChecks())
}

func cacheChecks() []check {
	return concat(eventChecks(), orderChecks(), replayChecks(), handlerChecks(), freshnessChecks(),
		lifecycleChecks(), subscribeChecks(), driveChecks())
}

func concat(lists ...[]check) []check {
	var all []check
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func runAll(t *testing.T, factory Factory, checks []check) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.execute(t, factory) })
	}
}

// check proves one promise.
type check struct {
	name    string
	promise string
	// source is where the promise is made.
	source string
	// skip tells why the promise does not apply to the subject; nil: it does.
	skip func(*suite) string
	run  func(*suite)
}

func (c check) execute(tb testing.TB, factory Factory) {
	tb.Helper()
	s := newSuite(tb, c, factory(tb, kinds()))
	if c.skip != nil {
		if why := c.skip(s); why != "" {
			tb.Skip(why)
		}
	}
	c.run(s)
}
