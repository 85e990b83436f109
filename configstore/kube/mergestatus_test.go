// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestMergeStatus: foreign fields of a status stay, to the last digit.
func TestMergeStatus(t *testing.T) {
	accepted := kube.Condition{Type: "Accepted", True: true, Reason: "Valid", Message: "new"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		stored, want string // want is empty if nothing changes
	}{
		"None": {``, `{"observedGeneration":7,"conditions":[
			{"type":"Accepted","status":"True","reason":"Valid","message":"new","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`},
		"Null": {`{"conditions":null}`, `{"observedGeneration":7,"conditions":[
			{"type":"Accepted","status":"True","reason":"Valid","message":"new","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`},
		"Others": {
			`{"big":9007199254740993,"observedGeneration":6,"conditions":[{"type":"Foreign","n":9007199254740993},
				{"type":"Accepted","status":"True","reason":"Old","n":1e400,"lastTransitionTime":"2025-01-01T00:00:00Z"}, {"status":"True"}]}`,
			`{"big":9007199254740993,"observedGeneration":7,"conditions":[{"type":"Foreign","n":9007199254740993},
				{"type":"Accepted","status":"True","reason":"Valid","message":"new","n":1e400,"lastTransitionTime":"2025-01-01T00:00:00Z"}, {"status":"True"}]}`,
		},
		"OtherStatement": {
			`{"observedGeneration":"7","conditions":[{"type":"Accepted","status":"False","lastTransitionTime":"2025-01-01T00:00:00Z"}]}`,
			`{"observedGeneration":7,"conditions":[
				{"type":"Accepted","status":"True","reason":"Valid","message":"new","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`,
		},
		"Generation": {
			`{"observedGeneration":6,"conditions":[{"type":"Accepted","status":"True","reason":"Valid","message":"new"}]}`,
			`{"observedGeneration":7,"conditions":[{"type":"Accepted","status":"True","reason":"Valid","message":"new"}]}`,
		},
		"Same":       {`{"observedGeneration":7,"conditions":[{"type":"Accepted","status":"True","reason":"Valid","message":"new"}]}`, ``},
		"SameAsText": {`{"observedGeneration":"7","conditions":[{"type":"Accepted","status":"True","reason":"Valid","message":"new","x":1}]}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed, err := kube.MergeStatus(json.RawMessage(test.stored), 7, []kube.Condition{accepted}, now)
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if changed || string(got) != test.stored {
					t.Errorf("it has changed to %s", got)
				}
				return
			}
			if diff := cmp.Diff(parsed(t, test.want), parsed(t, string(got))); diff != "" || !changed {
				t.Errorf("changed: %t (-want +got):\n%s", changed, diff)
			}
		})
	}
	for _, broken := range []string{`"text"`, `{"conditions":"text"}`, `{"conditions":["text"]}`} {
		if got, _, err := kube.MergeStatus(json.RawMessage(broken), 7, []kube.Condition{accepted}, now); err == nil {
			t.Errorf("of %s it has made %s", broken, got)
		}
	}
}
