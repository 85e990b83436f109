// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

type (
	request = xdsupdate.PushRequest
	reasons = map[xdsupdate.TriggerReason]int
)

func keys(names ...string) map[xdsupdate.ConfigKey]struct{} {
	var out []xdsupdate.ConfigKey
	for _, name := range names {
		out = append(out, vs(name))
	}
	return xdsupdate.KeySet(out...)
}

func TestMerge(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	tests := []struct {
		name       string
		a, b, want *request
	}{
		{"nothing", nil, nil, nil},
		{"nil is the identity", nil, &request{Start: late}, &request{Start: late}},
		{
			"keys are united", &request{ConfigsUpdated: keys("a", "b")}, &request{ConfigsUpdated: keys("b", "c")},
			&request{ConfigsUpdated: keys("a", "b", "c")},
		},
		{"everything stays everything", &request{}, &request{ConfigsUpdated: keys("a")}, &request{}},
		{
			"empty is everything", &request{ConfigsUpdated: map[xdsupdate.ConfigKey]struct{}{}},
			&request{ConfigsUpdated: keys("a")}, &request{},
		},
		{
			"full if one is", &request{ConfigsUpdated: keys("a")}, &request{Full: true, ConfigsUpdated: keys("b")},
			&request{Full: true, ConfigsUpdated: keys("a", "b")},
		},
		{"forced is full", &request{Forced: true}, &request{}, &request{Forced: true, Full: true}},
		{
			"reasons are counted", &request{Reason: reasons{"a": 1, "b": 2}}, &request{Reason: reasons{"b": 3, "c": 1}},
			&request{Reason: reasons{"a": 1, "b": 5, "c": 1}},
		},
		{"earliest start", &request{Start: late}, &request{Start: early}, &request{Start: early}},
		{"unknown start", &request{}, &request{Start: late}, &request{Start: late}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, got := range []*request{tt.a.Merge(tt.b), tt.b.Merge(tt.a)} {
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("Merge (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestMergeNeverNarrows: in Istio 1.26 and later a request for everything, merged
// with one that has keys, becomes one for these keys.
func TestMergeNeverNarrows(t *testing.T) {
	all, one := &request{Full: true}, fullPush("a")
	for _, got := range []*request{all.Merge(one), one.Merge(all), one.Merge(all).Merge(one)} {
		if !got.Everything() || !got.Has(vs("b")) {
			t.Errorf("merged with %v: %v", one, got)
		}
	}
}

// TestMergeSharesNothingThatChanges: results of a merge are inputs of others.
func TestMergeSharesNothingThatChanges(t *testing.T) {
	a, b := fullPush("a"), fullPush("b")
	ab := a.Merge(b)
	_ = ab.Merge(fullPush("c"))
	_ = ab.Merge(fullPush("d"))
	_ = a.Merge(&request{ConfigsUpdated: keys("a"), Reason: reasons{xdsupdate.ReasonConfig: 1}}).Merge(fullPush("x"))
	want := &request{Full: true, ConfigsUpdated: keys("a", "b"), Reason: reasons{xdsupdate.ReasonConfig: 2}}
	if diff := cmp.Diff(want, ab); diff != "" {
		t.Errorf("changed by later merges (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fullPush("a"), a); diff != "" {
		t.Errorf("changed by its merge (-want +got):\n%s", diff)
	}
}

func TestRequestQuestions(t *testing.T) {
	r := &request{ConfigsUpdated: keys("b", "a")}
	if !r.Has(vs("a")) || r.Has(vs("c")) || r.Everything() {
		t.Errorf("%v: Has or Everything is wrong", r)
	}
	if diff := cmp.Diff([]xdsupdate.ConfigKey{vs("a"), vs("b")}, r.Keys()); diff != "" {
		t.Errorf("Keys (-want +got):\n%s", diff)
	}
	if (&request{}).Keys() != nil {
		t.Error("everything has keys")
	}
	var none *request
	if got := none.String(); got != "no push" {
		t.Errorf("String of nil = %q", got)
	}
}

// TestServiceKey: the kind is written down here without an import.
func TestServiceKey(t *testing.T) {
	key := xdsupdate.ServiceKey(host, ns)
	want := xdsupdate.ConfigKey{Kind: istio.ServiceEntry, Name: host, Namespace: ns}
	if key != want || !xdsupdate.IsServiceKey(key) || xdsupdate.IsServiceKey(vs(host)) {
		t.Errorf("ServiceKey = %v, want %v", key, want)
	}
}

// FuzzMerge: however requests are grouped, and whether they are merged or
// collected, the result is the same, and the requests are what they were.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{0x01, 0x22, 0x13, 0x84, 0x40, 0xff}, uint8(3))
	f.Add([]byte{0x0f, 0x00, 0xf1}, uint8(1))
	f.Add([]byte{0x38, 0x3a}, uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		requests, copies := decode(data), decode(data)
		n := 0
		if len(requests) > 0 {
			n = int(cut) % (len(requests) + 1)
		}
		left := fold(requests...)
		if diff := cmp.Diff(left, fold(requests[:n]...).Merge(fold(requests[n:]...))); diff != "" {
			t.Errorf("grouped at %d (-left +other):\n%s", n, diff)
		}
		var right *request
		for _, r := range slices.Backward(requests) {
			right = r.Merge(right)
		}
		if diff := cmp.Diff(left, right); diff != "" {
			t.Errorf("folded from the right (-left +right):\n%s", diff)
		}
		if len(requests) > 0 {
			checkCollected(t, requests, n, left)
		}
		if diff := cmp.Diff(copies, requests); diff != "" {
			t.Errorf("requests changed (-want +got):\n%s", diff)
		}
	})
}

// checkCollected compares with what a Pusher collects, in one part and in two.
func checkCollected(t *testing.T, requests []*request, n int, want *request) {
	t.Helper()
	collected := *want
	if collected.Full = want.Full || want.Forced; len(want.Reason) == 0 {
		collected.Reason = reasons{xdsupdate.ReasonUnknown: 1}
	}
	for _, parts := range [][][]*request{{requests}, {requests[:n], requests[n:]}} {
		got := xdsupdate.Collect(parts...)
		if diff := cmp.Diff(&collected, got); diff != "" {
			t.Errorf("collected (-merged +collected):\n%s", diff)
		}
	}
}

func fold(requests ...*request) *request {
	var out *request
	for _, r := range requests {
		out = out.Merge(r)
	}
	return out
}

// decode makes a request of each byte.
func decode(data []byte) []*request {
	var out []*request
	for i, b := range data {
		r := &request{Full: b&1 != 0, Forced: b&0x30 == 0x30}
		if b&2 != 0 {
			r.Start = time.Unix(int64(b>>4), 0)
		}
		if b&4 != 0 {
			r.Reason = reasons{xdsupdate.TriggerReason(rune('a' + b>>6)): i + 1}
		}
		if b&8 != 0 {
			r.ConfigsUpdated = keys(string(rune('a'+b>>5)), string(rune('a'+b>>6)))
		}
		out = append(out, r)
	}
	return out
}
