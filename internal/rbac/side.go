// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
)

// side is one of the two of which Envoy's policies are made: permissions, or principals. They are
// combined in the same way.
type side[M any] struct {
	// everything matches always.
	everything func() M
	and, or    func([]M) M
	not        func(M) M
}

func permissions() side[*rbacv3.Permission] {
	set := func(list []*rbacv3.Permission) *rbacv3.Permission_Set { return &rbacv3.Permission_Set{Rules: list} }
	return side[*rbacv3.Permission]{
		everything: func() *rbacv3.Permission { return &rbacv3.Permission{Rule: &rbacv3.Permission_Any{Any: true}} },
		and: func(list []*rbacv3.Permission) *rbacv3.Permission {
			return &rbacv3.Permission{Rule: &rbacv3.Permission_AndRules{AndRules: set(list)}}
		},
		or: func(list []*rbacv3.Permission) *rbacv3.Permission {
			return &rbacv3.Permission{Rule: &rbacv3.Permission_OrRules{OrRules: set(list)}}
		},
		not: func(m *rbacv3.Permission) *rbacv3.Permission {
			return &rbacv3.Permission{Rule: &rbacv3.Permission_NotRule{NotRule: m}}
		},
	}
}

func principals() side[*rbacv3.Principal] {
	set := func(list []*rbacv3.Principal) *rbacv3.Principal_Set { return &rbacv3.Principal_Set{Ids: list} }
	return side[*rbacv3.Principal]{
		everything: func() *rbacv3.Principal { return &rbacv3.Principal{Identifier: &rbacv3.Principal_Any{Any: true}} },
		and: func(list []*rbacv3.Principal) *rbacv3.Principal {
			return &rbacv3.Principal{Identifier: &rbacv3.Principal_AndIds{AndIds: set(list)}}
		},
		or: func(list []*rbacv3.Principal) *rbacv3.Principal {
			return &rbacv3.Principal{Identifier: &rbacv3.Principal_OrIds{OrIds: set(list)}}
		},
		not: func(m *rbacv3.Principal) *rbacv3.Principal {
			return &rbacv3.Principal{Identifier: &rbacv3.Principal_NotId{NotId: m}}
		},
	}
}

// allOf returns what matches where all of a list do; an empty list matches everything.
func (s side[M]) allOf(list []M) M {
	switch len(list) {
	case 0:
		return s.everything()
	case 1:
		return list[0]
	default:
		return s.and(list)
	}
}

// anyOf returns what matches where one of a list does, which is not empty.
func (s side[M]) anyOf(list []M) M {
	if len(list) == 1 {
		return list[0]
	}
	return s.or(list)
}

// field is a part of a rule: values of which one has to be, and others of which none may be.
type field[M any] struct {
	// at is the place in the rule, and not that of the negative values, such as "from[0].source.principals".
	at, notAt string
	values    []string
	not       []string
	// match returns what matches one of some values.
	match func(values []string) ([]M, error)
	// wide, if it is set, is in its place where what does not match is let in: for positive values of what
	// denies, and for negative ones of what allows.
	wide func(values []string) ([]M, error)
	// http: connections do not have it.
	http bool
}

// demands returns what a field demands, of an ALLOW policy or of another; err is why the field cannot be
// checked here.
func (f field[M]) demands(s side[M], form Form, allows bool) (out []M, at string, err error) {
	for _, part := range []struct {
		values   []string
		at       string
		negative bool
	}{{f.values, f.at, false}, {f.not, f.notAt, true}} {
		if len(part.values) == 0 {
			continue
		}
		if f.http && form == TCP {
			return nil, part.at, errHTTP
		}
		match := f.match
		if f.wide != nil && allows == part.negative {
			match = f.wide
		}
		list, err := match(part.values)
		if err != nil {
			return nil, part.at, err
		}
		m := s.anyOf(list)
		if part.negative {
			m = s.not(m)
		}
		out = append(out, m)
	}
	return out, "", nil
}
