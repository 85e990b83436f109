// SPDX-License-Identifier: Apache-2.0

package acks

import (
	"strconv"
	"testing"
)

// TestUnansweredResponsesAreBounded: a delta client may ask, and be answered, as
// often as it likes without ever answering.
func TestUnansweredResponsesAreBounded(t *testing.T) {
	var a Tracker
	for i := range 10_000 {
		o := a.Sent("v" + strconv.Itoa(i))
		o.Nonce, o.Epoch = strconv.Itoa(i), uint64(i)
	}
	if n := cap(a.Unanswered); n > 2*maxUnanswered {
		t.Errorf("room for %d responses is kept, want at most %d", n, 2*maxUnanswered)
	}
	var o Response
	if a.Answer("5", false, &o) {
		t.Error("a response that was forgotten is answered")
	}
	ok := a.Answer("9990", false, &o)
	if !ok || a.Applied != 9990 || a.AckedVersion != "v9990" || o.Nonce != "9990" {
		t.Errorf("answered = %+v, %v; acks = %+v", o, ok, a)
	}
	if len(a.Unanswered) != 9 || a.Unanswered[8].Nonce != "9999" {
		t.Errorf("unanswered are %+v", a.Unanswered)
	}
}
