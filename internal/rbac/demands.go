// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"strings"
)

// demands are what the fields of a part of a rule demand, together, of one side. A field that cannot be checked is
// a problem of the translation, and demands nothing.
type demands[M any] struct {
	*translation
	side[M]
	// list, index and of are the part, such as "from", 0, ".source".
	list  string
	index int
	of    string
	all   []M
}

// matching is how the values of a field are matched.
type matching[M any] struct {
	// match returns what matches one of some values.
	match func(values []string) ([]M, error)
	// wide, if it is set, is in its place where what does not match is let in: for positive values of what
	// denies, and for negative ones of what allows.
	wide func(values []string) ([]M, error)
	// http: connections do not have it.
	http bool
}

// field adds what a field demands: values of which one has to be, and others of which none may be.
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

// values adds that one of some values has to be, or that none of them may be.
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

// problem records why a field of the part cannot be checked.
func (d *demands[M]) problem(field string, err error) {
	d.translation.problem(fmt.Sprintf("%s[%d]%s.%s", d.list, d.index, d.of, field), err)
}

// with returns what matches where the part does, and other demands are met.
func (d *demands[M]) with(others []M) M { return d.allOf(append(d.all, others...)) }
