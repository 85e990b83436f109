// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/contract"
)

func TestRecording(t *testing.T) {
	var r contract.Recording[string]
	r.Add("a")
	kept := r.All()
	r.Add("b")
	if !slices.Equal(kept, []string{"a"}) {
		t.Errorf("All returned what changed to %v", kept)
	}
	if got := r.Take(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("took %v, want a and b", got)
	}
	r.Add("c")
	if got := r.Take(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("took %v, want c alone", got)
	}
	if got := append(r.All(), r.Take()...); len(got) != 0 {
		t.Errorf("%v is left, want nothing", got)
	}
}

func TestRecordingAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r contract.Recording[int]
		three := func(calls []int) bool { return len(calls) >= 3 }
		start := time.Now()
		if r.Await(time.Second, three) || time.Since(start) != time.Second {
			t.Errorf("waited %v for calls that did not come, want 1s", time.Since(start))
		}
		go func() {
			for i := range 3 {
				time.Sleep(time.Second / 4)
				r.Add(i)
			}
		}()
		if !r.Await(time.Second, three) {
			t.Error("three calls were not noticed in time")
		}
		if !r.Await(0, three) {
			t.Error("what is there is not enough without a wait")
		}
	})
}
