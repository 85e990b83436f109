// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"
	"unsafe"
)

// TestSleptMachine: time counts even if one of the two clocks of a machine stood still.
func TestSleptMachine(t *testing.T) {
	now := time.Now()
	if set := setBack(now, time.Hour); !set.Round(0).Equal(now.Round(0).Add(-time.Hour)) || set.Sub(now) != 0 {
		t.Fatalf("set back, %v is %v", now, set)
	}
	e := &Election{duration: 3 * time.Second, now: func() time.Time { return now }, renewed: now}
	if e.left() != 2*time.Second {
		t.Errorf("leadership lasts %v", e.left())
	}
	for name, at := range map[string]time.Time{
		"the wall clock has gone on":      setBack(now, -2*time.Second),
		"the monotonic clock has gone on": setBack(now.Add(2*time.Second), time.Hour),
		"both have":                       now.Add(2 * time.Second),
	} {
		now = at
		if left := e.left(); left > 0 {
			t.Errorf("%s: leadership lasts %v", name, left)
		}
	}
}

// setBack returns a time with an earlier wall clock and an unchanged monotonic clock.
func setBack(t time.Time, by time.Duration) time.Time {
	type layout struct {
		wall uint64
		ext  int64 // the monotonic reading
		loc  *time.Location
	}
	set := t.Add(-by)
	(*layout)(unsafe.Pointer(&set)).ext += int64(by) //nolint:gosec // Only the kernel makes such times otherwise.
	return set
}
