// SPDX-License-Identifier: Apache-2.0

package memo_test

import (
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/memo"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// TestShared: concurrent calls for a key share one computation, and other keys do not wait for it.
func TestShared(t *testing.T) {
	var results memo.Results[string, int]
	var calls atomic.Int32
	started, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if got := results.Get("slow", func() int { calls.Add(1); close(started); <-release; return 7 }); got != 7 {
				t.Errorf("Get(slow) = %d, want 7", got)
			}
		})
	}
	<-started
	if got := results.Get("other", func() int { return 8 }); got != 8 || !results.Has("slow") || results.Has("none") {
		t.Errorf("Get(other) = %d, Has(slow) = %t, Has(none) = %t", got, results.Has("slow"), results.Has("none"))
	}
	close(release)
	wg.Wait()
	if got, want := results.All(), map[string]int{"slow": 7, "other": 8}; !maps.Equal(got, want) || calls.Load() != 1 {
		t.Errorf("All() = %v after %d computations, want %v after one", got, calls.Load(), want)
	}
}

// TestBounded: results that are no longer used do not stay for ever.
func TestBounded(t *testing.T) {
	var results memo.Results[int, int]
	for i := range 100_000 {
		if got := results.Get(i, func() int { return -i }); got != -i || !results.Has(i) {
			t.Fatalf("Get(%d) = %d, and it is kept: %t", i, got, results.Has(i))
		}
	}
	if n := len(results.All()); n > 20_000 || !results.Forgot() {
		t.Errorf("%d results are kept, some are forgotten: %t", n, results.Forgot())
	}
}
