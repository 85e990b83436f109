// SPDX-License-Identifier: Apache-2.0

package acks

import (
	"strconv"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
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

// TestAnswers: a refusal leaves the accepted version as it was, unless the response was sent to be
// refused; an answer counts for the responses before it; and no nonce, or one again, is no answer.
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
	if !a.AwaitsParts() {
		t.Error("a part is not awaited")
	}
	answer("part", true, true, "version of second", 1)
	if a.AwaitsParts() {
		t.Error("a part that is answered is awaited")
	}
	send("absent", &resource.State{Name: "c", Marker: resource.Absent})
	answer("absent", true, true, "version of absent", 1)
}

// TestForgottenResponses: of responses that are remembered as one the refusal of any is that of
// all; that one of them but the last is accepted says nothing, and stale nonces are no answers.
func TestForgottenResponses(t *testing.T) {
	var a Tracker
	var o Response
	send := func(i int, listed ...*resource.State) {
		r := a.Sent("version")
		r.Nonce, r.Listed, r.SentAt = strconv.Itoa(i), listed, time.Unix(int64(i), 0)
	}
	send(7)
	if !a.Answer("7", false, &o) {
		t.Fatal("no answer")
	}
	last := 8 + maxUnanswered + 5
	for i := 8; i <= last; i++ {
		send(i, &resource.State{Name: strconv.Itoa(i % 10)})
	}
	for _, nonce := range []string{"", "7", "9", "x", strconv.Itoa(last + 1)} {
		if a.Answer(nonce, false, &o) {
			t.Errorf("the nonce %q is an answer", nonce)
		}
	}
	if a.Answer("7", true, &o) {
		t.Error("a stale refusal counts")
	}
	if !a.Answer("10", true, &o) || a.Refused != 1 || o.Oldest != "8" || !o.SentAt.Equal(time.Unix(8, 0)) {
		t.Errorf("refused: %d; the response %+v", a.Refused, o)
	}
	for _, name := range []string{"8", "9", "0", "1"} {
		if o.Find(name) == nil {
			t.Errorf("the response lacks %s", name)
		}
	}
	if !a.Answer(strconv.Itoa(last), false, &o) || len(a.Unanswered) > 0 {
		t.Errorf("unanswered: %+v", a.Unanswered)
	}
}
