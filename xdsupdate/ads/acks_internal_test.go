// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"strconv"
	"testing"
)

// TestUnansweredResponsesAreBounded: a delta client may ask, and be answered, as
// often as it likes without ever answering.
func TestUnansweredResponsesAreBounded(t *testing.T) {
	var a acks
	for i := range 10_000 {
		o := a.sent("v" + strconv.Itoa(i))
		o.nonce, o.epoch = strconv.Itoa(i), uint64(i)
	}
	if n := cap(a.outstanding); n > 2*maxOutstanding {
		t.Errorf("room for %d responses is kept, want at most %d", n, 2*maxOutstanding)
	}
	var o outstanding
	if a.answered("5", false, &o) {
		t.Error("a response that was forgotten is answered")
	}
	ok := a.answered("9990", false, &o)
	if !ok || a.done != 9991 || a.applied != 9990 || a.ackedVersion != "v9990" || o.nonce != "9990" {
		t.Errorf("answered = %+v, %v; acks = %+v", o, ok, a)
	}
	if len(a.outstanding) != 9 || a.last() != "9999" {
		t.Errorf("%d outstanding, the last %q", len(a.outstanding), a.last())
	}
}
