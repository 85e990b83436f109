// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
)

// side contains the constructors of one side of an Envoy policy: permissions, or principals. The
// sides are combined in the same way.
type side[M any] struct {
	// everything always matches.
	everything func() M
	and, or    func([]M) M
	not        func(M) M
}

func permissions() side[*rbacv3.Permission] {
	return side[*rbacv3.Permission]{
		everything: func() *rbacv3.Permission { return &rbacv3.Permission{Rule: &rbacv3.Permission_Any{Any: true}} },
		and: func(list []*rbacv3.Permission) *rbacv3.Permission {
			return &rbacv3.Permission{Rule: &rbacv3.Permission_AndRules{AndRules: &rbacv3.Permission_Set{Rules: list}}}
		},
		or: func(list []*rbacv3.Permission) *rbacv3.Permission {
			return &rbacv3.Permission{Rule: &rbacv3.Permission_OrRules{OrRules: &rbacv3.Permission_Set{Rules: list}}}
		},
		not: func(m *rbacv3.Permission) *rbacv3.Permission {
			return &rbacv3.Permission{Rule: &rbacv3.Permission_NotRule{NotRule: m}}
		},
	}
}

func principals() side[*rbacv3.Principal] {
	return side[*rbacv3.Principal]{
		everything: func() *rbacv3.Principal { return &rbacv3.Principal{Identifier: &rbacv3.Principal_Any{Any: true}} },
		and: func(list []*rbacv3.Principal) *rbacv3.Principal {
			return &rbacv3.Principal{Identifier: &rbacv3.Principal_AndIds{AndIds: &rbacv3.Principal_Set{Ids: list}}}
		},
		or: func(list []*rbacv3.Principal) *rbacv3.Principal {
			return &rbacv3.Principal{Identifier: &rbacv3.Principal_OrIds{OrIds: &rbacv3.Principal_Set{Ids: list}}}
		},
		not: func(m *rbacv3.Principal) *rbacv3.Principal {
			return &rbacv3.Principal{Identifier: &rbacv3.Principal_NotId{NotId: m}}
		},
	}
}

// allOf returns the conjunction of a list; an empty list matches everything.
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

// anyOf returns the disjunction of a list, which must not be empty.
func (s side[M]) anyOf(list []M) M {
	if len(list) == 1 {
		return list[0]
	}
	return s.or(list)
}
