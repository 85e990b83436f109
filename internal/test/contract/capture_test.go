// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/contract"
)

func TestCapture(t *testing.T) {
	var ran []string
	got := contract.Capture(t, func(tb testing.TB) {
		tb.Helper()
		tb.Cleanup(func() { ran = append(ran, "first") })
		tb.Cleanup(func() { tb.Errorf("in a cleanup") })
		tb.Cleanup(func() { ran = append(ran, "last") })
		if tb.Failed() {
			ran = append(ran, "failed at once")
		}
		tb.Errorf("%d and on", 1)
		if !tb.Failed() {
			ran = append(ran, "not failed")
		}
		defer func() { ran = append(ran, "deferred") }()
		tb.Fatalf("no %s", "more")
		ran = append(ran, "went on")
	})
	if diff := cmp.Diff([]string{"1 and on", "no more", "in a cleanup"}, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"deferred", "last", "first"}, ran); diff != "" {
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
