// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/contract"
)

// Subject is one fresh, empty store, with the capabilities that the suite may test.
type Subject struct {
	// Store is the store under test. TestCache needs a configstore.ConfigStoreCache that was not
	// run yet.
	Store configstore.ConfigStore

	// Writer takes the suite's writes if Store is a read-only view of something
	// else. The suite then leaves out what concerns writing and demands that
	// Store refuses every write with ErrReadOnly. Default: Store.
	Writer configstore.ConfigStore

	// CatchUp returns when the reads of Store show everything that was written
	// before the call. Set it if reads lag behind writes. Default: they do not.
	CatchUp func()

	// Batches takes the suite's batches. Default: the one of Writer and Store
	// that takes its writes, if it is a configstore.BatchWriter; else none does.
	Batches configstore.BatchWriter

	// NetBatches declares that several mutations of one object in a batch cause only one event for
	// their net change, if any. By default each mutation causes an event.
	NetBatches bool

	// APIServer is set if writes go to a Kubernetes API server: Domain and
	// CreationTimestamp are not the writer's, and a Status in a Create or an Update
	// is a change of its own. Default: they are, and it is not.
	APIServer bool

	// History is the number of changes that Watch can go back. Set it to have
	// ErrCompacted checked. Default: 0, not checked.
	History int

	// Fewer divides how often checks repeat what they do; each is done at least once. Set it
	// where a write is a request to a server, and time is short. Default: 1.
	Fewer int

	// Timeout is how long the suite waits for something that must happen before
	// it calls it lost or deadlocked, until the first check fails. Default: 10 s.
	Timeout time.Duration
}

// defaultTimeout leaves room for a loaded machine and the race detector. A broken
// promise should show in seconds.
const defaultTimeout = 10 * time.Second

// Factory makes a Subject that keeps the kinds of schemas and validates with them. It is called
// once for each promise; it releases its resources with t.Cleanup.
type Factory func(tb testing.TB, schemas configstore.Schemas) Subject

// TestStore proves the promises of configstore.ConfigStore.
func TestStore(t *testing.T, factory Factory) {
	t.Helper()
	contract.Run(t, storeChecks(), setUp(factory))
}

// TestCache proves what configstore.ConfigStoreCache promises beyond a
// ConfigStore: its events and its life. Run TestStore as well.
func TestCache(t *testing.T, factory Factory) {
	t.Helper()
	contract.Run(t, cacheChecks(), setUp(factory))
}

func storeChecks() []check {
	return slices.Concat(readChecks(), createChecks(), updateChecks(), statusChecks(), deleteChecks(), ownershipChecks(),
		concurrencyChecks(), revisionChecks(), batchChecks(), watchChecks(), readOnlyChecks())
}

func cacheChecks() []check {
	return slices.Concat(eventChecks(), orderChecks(), replayChecks(), handlerChecks(), freshnessChecks(),
		lifecycleChecks(), subscribeChecks(), driveChecks())
}
