// SPDX-License-Identifier: Apache-2.0

package istio

// valueList is a field of a rule with a list of values. check, if set, refuses invalid values.
// unmatched, if set, returns the reason why a value, which may be empty, can match nothing, or "".
type valueList struct {
	name      string
	values    []string
	check     func(at *field, name string, values []string)
	unmatched func(value string) string
}

// checkValues checks the lists of a part of a rule. If all are empty, the part is refused, saying none.
func checkValues(at *field, none string, lists ...valueList) {
	used := 0
	for _, list := range lists {
		checkNoEmpty(at, list.name, list.values)
		used += len(list.values)
	}
	if used == 0 {
		at.refuse("%s", none)
	}
	for _, list := range lists {
		if list.check != nil {
			list.check(at, list.name, list.values)
		}
		if list.unmatched == nil {
			continue
		}
		for i, value := range list.values {
			if reason := list.unmatched(value); value != "" && reason != "" {
				at.elem(list.name, i).warn("%s, is %q", reason, value)
			}
		}
	}
}
