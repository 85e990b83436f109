// SPDX-License-Identifier: Apache-2.0

package istio

import "strings"

const (
	maxLabelPrefixLength = 253
	labelNameRule        = "letters, digits, and inside also '-', '_' and '.', at most 63 characters"
)

// checkLabels refuses labels that break the grammar of Kubernetes: keys are an
// optional DNS prefix with a slash, then a name; values are empty or a name.
func checkLabels(at *field, name string, labels map[string]string) {
	start := at.out.mark()
	for key, value := range labels {
		if problem := labelKeyProblem(key); problem != "" {
			at.entry(name, key).refuse("key %s", problem)
		}
		if value != "" && !isLabelName(value) {
			at.entry(name, key).refuse("must be empty or a label value (%s), is %q", labelNameRule, value)
		}
	}
	at.out.sortSince(start)
}

func labelKeyProblem(key string) string {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		name = key
	}
	switch {
	case key == "":
		return "must not be empty"
	case !isLabelName(name):
		return "must end in a name (" + labelNameRule + ")"
	case prefixed && !isLabelPrefix(prefix):
		return "must have a DNS name before the slash, at most 253 characters"
	default:
		return ""
	}
}

// isLabelName is the common grammar of the names in keys and of values.
func isLabelName(s string) bool {
	if s == "" || len(s) > maxLabelLength || !isAlphanumeric(s[0]) || !isAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func isLabelPrefix(s string) bool {
	if len(s) > maxLabelPrefixLength {
		return false
	}
	for more := true; more; {
		var label string
		if label, s, more = strings.Cut(s, "."); !isDashed(label) {
			return false
		}
	}
	return true
}
