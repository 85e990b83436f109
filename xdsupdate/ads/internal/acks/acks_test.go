// SPDX-License-Identifier: Apache-2.0

package acks

import (
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// TestAnswers: a NACK leaves the accepted version as it was, unless the NACK was expected; an
// answer counts for earlier responses, too; an empty or repeated nonce is no answer.
func TestAnswers(t *testing.T) {
	var a Tracker
	send := func(nonce string, listed ...*resource.State) {
		o := a.Sent("version of " + nonce)
		o.Nonce, o.Epoch, o.Listed, o.IsPart = nonce, 1, listed, nonce == "part"
	}
	var o Response
	answer := func(nonce string, refused, counts bool, version string, refusals int) {
		t.Helper()
		if ok := a.Answer(nonce, refused, &o); ok != counts || a.AckedVersion != version || a.Refused != refusals {
			t.Errorf("the answer %q counts: %v; %q is accepted, and %d are refused, want %q and %d", nonce, ok, a.AckedVersion, a.Refused, version, refusals)
		}
	}
	send("first")
	send("second", &resource.State{Name: "a"})
	if !a.Awaits("a") || a.Awaits("b") {
		t.Error("what is sent is not awaited, or something else is")
	}
	answer("", false, false, "", 0)
	answer("second", false, true, "version of second", 0)
	answer("first", false, false, "version of second", 0)
	answer("second", true, false, "version of second", 0)
	send("part")
	if !a.Full() {
		t.Error("a part is not awaited")
	}
	answer("part", true, true, "version of second", 1)
	if a.Full() {
		t.Error("a part that is answered is awaited")
	}
	send("absent", &resource.State{Name: "c", Marker: resource.Absent})
	answer("absent", true, true, "version of absent", 1)
}

// TestFull: no response is allowed while too many responses are unanswered, or one part is; each
// answer makes room.
func TestFull(t *testing.T) {
	var a Tracker
	var o Response
	for i := range 2 * maxUnanswered.Get() {
		if full := i >= maxUnanswered.Get(); a.Full() != full {
			t.Errorf("after %d responses it is full: %v", i, a.Full())
		}
		a.Sent("version").Nonce = strconv.Itoa(i)
	}
	for nonce, full := range map[string]bool{"": true, "x": true, strconv.Itoa(2*maxUnanswered.Get() - 1): false} {
		if a.Answer(nonce, true, &o); nonce != "" && nonce != "x" && a.Full() != full {
			t.Errorf("after the answer %q it is full: %v", nonce, a.Full())
		}
	}
	a.Sent("version").IsPart = true
	if !a.Full() {
		t.Error("it is not full with a part")
	}
}
