// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestSoak churns for a minute. Then the resources of clients equal those of a fresh server, and
// when the clients have left the server holds no more memory than before.
func TestSoak(t *testing.T) {
	tier.OnlyFull(t, "a soak of a minute")
	w := newChurnWorld(t, true)
	fleet := newFleet(w.f, w.hosts, w.random)

	// State that is built once is built before the measurement.
	join(fleet)
	w.churn(fleet, func() bool { return w.steps < 500 })
	leave(t, w.f, fleet)
	w.f.flush()
	goroutines, before := runtime.NumGoroutine(), held()

	join(fleet)
	end := time.Now().Add(time.Minute)
	w.churn(fleet, func() bool { return time.Now().Before(end) })
	w.finish(t, fleet)
	t.Run("equal", func(t *testing.T) { equalsFresh(t, w, fleet) }) // the fresh server goes with it
	leave(t, w.f, fleet)
	w.f.flush()

	poll(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
	after := held()
	t.Logf("%d changes, %d streams opened again; heap %d objects, %d kB before, %d objects, %d kB after",
		w.steps, w.streams, before.HeapObjects, before.HeapAlloc>>10, after.HeapObjects, after.HeapAlloc>>10)
	if after.HeapObjects > before.HeapObjects*5/4 || after.HeapAlloc > before.HeapAlloc*5/4 {
		t.Error("the heap has grown by more than a quarter")
	}
}

// held returns the reachable memory of the heap.
func held() (stats runtime.MemStats) {
	runtime.GC()
	runtime.GC() // memory with finalizers
	runtime.ReadMemStats(&stats)
	return stats
}
