// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"testing"
	"time"
)

// A caller that has read the clock before another one and asks after it does not make
// the quiet time end earlier.
func TestTimesMayComeOutOfOrder(t *testing.T) {
	w := newWindow(100*time.Millisecond, time.Second, 0, false)
	w.ask(20 * time.Millisecond)
	w.ask(10 * time.Millisecond)
	if due := w.due(); due != 120*time.Millisecond {
		t.Errorf("due = %v, want 120ms", due)
	}
}
