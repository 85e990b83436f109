// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

// absent is no header.
const absent = "absent"

// headerConditions are the conditions of a rule on a header, with the values that match. A header
// with an empty value is present.
var headerConditions = []struct {
	name, condition string
	matches         []string
}{
	{"any", `values: ["*"]`, []string{"", "one", "two"}},
	{"exact", `values: [one]`, []string{"one"}},
	{"prefix", `values: ["o*"]`, []string{"one"}},
	{"suffix", `values: ["*e"]`, []string{"one"}},
	{"none", `notValues: ["*"]`, []string{absent}},
	{"not-exact", `notValues: [one]`, []string{"", "two", absent}},
	{"not-prefix", `notValues: ["o*"]`, []string{"", "two", absent}},
	{"not-suffix", `notValues: ["*e"]`, []string{"", "two", absent}},
	{"any-but", `values: ["*"], notValues: [one]`, []string{"", "two"}},
}

// TestEmptyHeaders: a header with an empty value is there, to all servers (S98).
func TestEmptyHeaders(t *testing.T) {
	t.Parallel()
	var rules []string
	for _, c := range headerConditions {
		rules = append(rules, fmt.Sprintf(`{when: [{key: "request.headers[x-case]", values: [%s]}, {key: "request.headers[x-name]", %s}]}`, c.name, c.condition))
	}
	eachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		for action, outcome := range map[string]struct{ matched, other codes.Code }{"DENY": {denied, allowed}, "ALLOW": {allowed, denied}} {
			t.Run(action, func(t *testing.T) {
				s := start(t, k, "", mode("STRICT")+policy("p", fmt.Sprintf(`{action: %s, rules: [%s]}`, action, strings.Join(rules, ", "))))
				s.cart.becomes(outcome.matched, "Get", "x-case", "exact", "x-name", "one")
				for _, c := range headerConditions {
					want := map[string]codes.Code{"": outcome.other, "one": outcome.other, "two": outcome.other, absent: outcome.other}
					for _, value := range c.matches {
						want[value] = outcome.matched
					}
					for value, code := range want {
						headers := []string{"x-case", c.name}
						if value != absent {
							headers = append(headers, "x-name", value)
						}
						if got := s.cart.call("Get", headers...); got != code {
							t.Errorf("%s, header %q: %v, want %v", c.name, value, got, code)
						}
					}
				}
				s.Accepted()
			})
		}
	})
}
