// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"strings"
)

// demands is the conjunction of the fields of a rule's part for one side. A field that cannot be
// checked is a problem of the translation, and adds no demand.
type demands[M any] struct {
	*translation
	side[M]
	// list, index and of identify the part, such as "from", 0, ".source".
	list  string
	index int
	of    string
	all   []M
}

// matching is how the values of a field are matched.
type matching[M any] struct {
	// match returns the matchers whose disjunction matches the values.
	match func(values []string) ([]M, error)
	// wide, if set, replaces match where a mismatch admits the request: for positive values of
	// policies that deny, and for negative values of policies that allow.
	wide func(values []string) ([]M, error)
	// http is set if connections do not have the field.
	http bool
}

// field adds the demands of a field: one of values must match, and no value of not may match.
func (d *demands[M]) field(name string, values, not []string, m matching[M]) {
	known := len(d.all)
	err := d.values(values, false, m)
	if err == nil {
		if err = d.values(not, true, m); err != nil {
			name = "not" + strings.ToUpper(name[:1]) + name[1:]
		}
	}
	if err != nil {
		d.all = d.all[:known]
		d.problem(name, err)
	}
}

// values adds the demand that some value matches, or, if negative, that no value matches.
func (d *demands[M]) values(values []string, negative bool, m matching[M]) error {
	if len(values) == 0 {
		return nil
	}
	if m.http && d.form == TCP {
		return errHTTP
	}
	match := m.match
	if m.wide != nil && d.strict == negative {
		match = m.wide
	}
	list, err := match(values)
	if err != nil {
		return err
	}
	one := d.anyOf(list)
	if negative {
		one = d.not(one)
	}
	d.all = append(d.all, one)
	return nil
}

// problem records the reason why a field of the part cannot be checked.
func (d *demands[M]) problem(field string, err error) {
	d.translation.problem(fmt.Sprintf("%s[%d]%s.%s", d.list, d.index, d.of, field), err)
}

// with returns the conjunction of the part's demands and others.
func (d *demands[M]) with(others []M) M { return d.allOf(append(d.all, others...)) }
