// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Condition is one Kubernetes condition of an object's status.
type Condition struct {
	// Type is the type of the condition, for example "Accepted".
	Type string
	// True is the status of the condition.
	True bool
	// Reason is one CamelCase word, for programs.
	Reason string
	// Message is for people.
	Message string
}

// ConditionAccepted is the type of the condition that a StatusWriter itself writes: whether the
// object could be decoded and is valid. The message of a valid object contains its warnings.
const ConditionAccepted = "Accepted"

// acceptedCondition is the condition for the verdict on an object, which may be nil.
func acceptedCondition(v *verdict) Condition {
	switch {
	case v == nil || v.err == nil && len(v.warnings) == 0:
		return Condition{Type: ConditionAccepted, True: true, Reason: "Valid"}
	case v.err != nil:
		return Condition{Type: ConditionAccepted, Reason: "Invalid", Message: v.err.Err.Error()}
	default:
		return Condition{Type: ConditionAccepted, True: true, Reason: "ValidWithWarnings", Message: strings.Join(texts(v.warnings), "; ")}
	}
}

// mergeStatus writes an observed generation and conditions into the text of a status. Other fields,
// and conditions of other types, stay. It returns false if the status does not change.
func mergeStatus(text json.RawMessage, generation int64, conditions []Condition, now time.Time) (json.RawMessage, bool, error) {
	status := map[string]json.RawMessage{}
	var old []map[string]json.RawMessage
	if !isNull(text) {
		if err := json.Unmarshal(text, &status); err != nil {
			return nil, false, fmt.Errorf("read the status: %w", err)
		}
		if list := status["conditions"]; !isNull(list) {
			if err := json.Unmarshal(list, &old); err != nil {
				return nil, false, fmt.Errorf("read the conditions: %w", err)
			}
		}
	}
	merged, changed := mergeConditions(old, conditions, now)
	observed := json.RawMessage(fmt.Sprint(generation))
	if before := string(status["observedGeneration"]); before != string(observed) && before != fmt.Sprintf("%q", observed) {
		changed = true
	}
	if !changed {
		return text, false, nil
	}
	status["observedGeneration"] = observed
	var err error
	if status["conditions"], err = json.Marshal(merged); err != nil {
		return nil, false, err
	}
	text, err = json.Marshal(status)
	return text, true, err
}

// mergeConditions replaces the conditions of the same types. Conditions whose status does not
// change keep their transition time.
func mergeConditions(old []map[string]json.RawMessage, conditions []Condition, now time.Time) (merged []map[string]json.RawMessage, changed bool) {
	merged = slices.Clone(old)
	for _, c := range conditions {
		next := map[string]string{
			"type": c.Type, "status": c.statement(), "reason": c.Reason, "message": c.Message,
			"lastTransitionTime": now.UTC().Format(time.RFC3339),
		}
		i := slices.IndexFunc(merged, func(m map[string]json.RawMessage) bool { return textOf(m["type"]) == c.Type })
		if i < 0 {
			merged, changed = append(merged, withTexts(nil, next)), true
			continue
		}
		before := merged[i]
		same := func(field string) bool { return textOf(before[field]) == next[field] }
		if same("status") && same("reason") && same("message") {
			continue
		}
		if same("status") && !isNull(before["lastTransitionTime"]) {
			delete(next, "lastTransitionTime")
		}
		merged[i], changed = withTexts(before, next), true
	}
	return merged, changed
}

func (c Condition) statement() string {
	if c.True {
		return "True"
	}
	return "False"
}

// withTexts returns a copy of an object with some fields replaced by texts.
func withTexts(object map[string]json.RawMessage, texts map[string]string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	maps.Copy(out, object)
	for name, text := range texts {
		out[name], _ = json.Marshal(text) //nolint:errchkjson // A string.
	}
	return out
}

// textOf returns the string, or "" if the field is absent or not a string.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}
