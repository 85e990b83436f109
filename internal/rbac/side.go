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
