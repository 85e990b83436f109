// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/contract"
)

func TestCapture(t *testing.T) {
	var told []string
	got := contract.Capture(t, func(tb testing.TB) {
		tb.Helper()
		tb.Cleanup(func() { told = append(told, "first") })
		tb.Cleanup(func() { tb.Errorf("in a cleanup") })
		tb.Cleanup(func() { told = append(told, "last") })
		if tb.Failed() {
			told = append(told, "failed at once")
		}
		tb.Errorf("%d and on", 1)
		if !tb.Failed() {
			told = append(told, "not failed")
		}
		defer func() { told = append(told, "deferred") }()
		tb.Fatalf("no %s", "more")
		told = append(told, "went on")
	})
	if diff := cmp.Diff([]string{"1 and on", "no more", "in a cleanup"}, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"deferred", "last", "first"}, told); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
}

func TestCaptureSkip(t *testing.T) {
	got := contract.Capture(t, func(tb testing.TB) {
		tb.Helper()
		tb.Skip("no reason")
		tb.Errorf("went on")
	})
	if len(got) > 0 || t.Skipped() {
		t.Errorf("failures %v, skipped: %t, want neither", got, t.Skipped())
	}
}
