// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"maps"
	"slices"
)

const (
	maxLabelPrefixLength = 253
	labelNameRule        = "letters, digits, and inside also '-', '_' and '.', at most 63 characters"
)

// checkLabels refuses labels that break the grammar of Kubernetes: keys are an
// optional DNS prefix with a slash, then a name; values are empty or a name.
func checkLabels(at *field, name string, labels map[string]string) {
	if areLabels(labels) {
		return // Most are, and need no order.
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problem := labelKeyProblem(key); problem != "" {
			at.entry(name, key).refuse("key %s", problem)
		}
		if value := labels[key]; value != "" && !isLabelName(value) {
			at.entry(name, key).refuse("must be empty or a label value (%s), is %q", labelNameRule, value)
		}
	}
}

func areLabels(labels map[string]string) bool {
	for key, value := range labels {
		if !isLabel(key, value) {
			return false
		}
	}
	return true
}

func isLabel(key, value string) bool {
	return labelKeyProblem(key) == "" && (value == "" || isLabelName(value))
}

func labelKeyProblem(key string) string {
	start := nameStart(key)
	slashed := start > 0 && key[start-1] == '/'
	switch {
	case key == "":
		return "must not be empty"
	case start > 0 && !slashed, !isNameShaped(key[start:]):
		return "must end in a name (" + labelNameRule + ")"
	case slashed && !isLabelPrefix(key[:start-1]):
		return "must have a DNS name before the slash, at most 253 characters"
	default:
		return ""
	}
}

// nameStart returns where the characters begin at the end of s that names consist
// of. Most of the time that validation takes goes into labels: their keys are read
// once, from the end.
func nameStart(s string) int {
	i := len(s)
	for i > 0 {
		if c := s[i-1]; !isAlphanumeric(c) && c != '-' && c != '.' && c != '_' {
			break
		}
		i--
	}
	return i
}

// isLabelName is the common grammar of the names in keys and of values.
func isLabelName(s string) bool { return nameStart(s) == 0 && isNameShaped(s) }

// isNameShaped reports whether s, which consists of the characters of names, is
// one.
func isNameShaped(s string) bool {
	return s != "" && len(s) <= maxLabelLength && isAlphanumeric(s[0]) && isAlphanumeric(s[len(s)-1])
}

// isLabelPrefix reports whether s consists of labels as isDashed accepts them, separated by dots.
func isLabelPrefix(s string) bool {
	if len(s) > maxLabelPrefixLength {
		return false
	}
	previous := byte('.')
	for i := range len(s) {
		c := s[i]
		switch {
		case isAlphanumeric(c):
		case c == '-' && previous != '.':
		case c == '.' && previous != '.' && previous != '-':
		default:
			return false
		}
		previous = c
	}
	return previous != '.' && previous != '-'
}
