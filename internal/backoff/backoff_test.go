// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestNext(t *testing.T) {
	b := Backoff{Longest: time.Second}
	for range 2 {
		for i, want := range []time.Duration{200, 400, 800, 1000, 1000} {
			want *= time.Millisecond
			if got := b.Next(); got < want || got > want*3/2 {
				t.Errorf("attempt %d: %v, want %v to %v", i, got, want, want*3/2)
			}
		}
		b.Reset()
	}
	if b := (Backoff{Longest: time.Millisecond}); b.Next() > 2*time.Millisecond {
		t.Error("the first time is longer than the longest")
	}
}

func TestSpread(t *testing.T) {
	longest := time.Duration(0)
	for range 100 {
		got := Spread(time.Second, 0.1)
		if got < time.Second || got > 1100*time.Millisecond {
			t.Fatalf("got %v", got)
		}
		longest = max(longest, got)
	}
	if longest == time.Second {
		t.Error("nothing is by chance")
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Sleep(t.Context(), time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		Sleep(ctx, time.Hour)
		if got := time.Since(began); got != time.Hour+time.Minute {
			t.Errorf("it took %v", got)
		}
	})
}
