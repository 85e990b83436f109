// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"errors"
	"fmt"
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	security "istio.io/api/security/v1beta1"
)

// Form is the kind of traffic and of the server to which rules apply.
type Form uint8

const (
	// HTTP is for requests to an Envoy.
	HTTP Form = iota
	// TCP is for connections, whose requests are unknown.
	TCP
	// GRPC is for the calls of a gRPC server.
	GRPC
	// GRPCNode is for the calls of a grpc-js server, which does not know the addresses and ports of
	// connections (grpc-js 1.14).
	GRPCNode

	// forms is the number of forms.
	forms = iota
)

// errHTTP is the reason why a field of a connection cannot be checked.
var errHTTP = errors.New("is of HTTP requests, and is not known of TCP connections")

// translation translates one rule of a policy.
type translation struct {
	form  Form
	trust Trust
	// unverified is Translator.Unverified.
	unverified bool
	// namespace is the policy's namespace, and rule the index of the rule.
	namespace string
	rule      int
	// strict is set if a rule with a part that cannot be checked matches nothing. Otherwise that
	// part is dropped.
	strict   bool
	problems []Problem
}

// Problem is a part of a policy that cannot be checked where it should be.
type Problem struct {
	// Field is the part, such as "spec.rules[0].to[1].operation.paths".
	Field string
	Err   error
	// HTTP is set if the part is valid but does not apply to TCP connections.
	HTTP bool
}

// policy returns the Envoy policy of a rule, or nil if the rule matches nothing.
func (t *translation) policy(rule *security.Rule) *rbacv3.Policy {
	of, to := t.conditions(rule)
	p := &rbacv3.Policy{}
	for i, from := range rule.GetFrom() {
		d := demands[*rbacv3.Principal]{translation: t, side: principals(), list: "from", index: i, of: ".source"}
		t.source(&d, from.GetSource())
		p.Principals = append(p.Principals, d.with(of))
	}
	if len(rule.GetFrom()) == 0 {
		p.Principals = []*rbacv3.Principal{principals().allOf(of)}
	}
	for i, o := range rule.GetTo() {
		d := demands[*rbacv3.Permission]{translation: t, side: permissions(), list: "to", index: i, of: ".operation"}
		t.operation(&d, o.GetOperation())
		p.Permissions = append(p.Permissions, d.with(to))
	}
	if len(rule.GetTo()) == 0 {
		p.Permissions = []*rbacv3.Permission{permissions().allOf(to)}
	}
	if t.strict && len(t.problems) > 0 {
		return nil
	}
	return p
}

// conditions returns the demands of a rule's conditions for both sides.
func (t *translation) conditions(rule *security.Rule) (of []*rbacv3.Principal, to []*rbacv3.Permission) {
	for i, c := range rule.GetWhen() {
		source := demands[*rbacv3.Principal]{translation: t, side: principals(), list: "when", index: i}
		operation := demands[*rbacv3.Permission]{translation: t, side: permissions(), list: "when", index: i}
		t.condition(&source, &operation, c)
		of, to = append(of, source.all...), append(to, operation.all...)
	}
	return of, to
}

// problem records the reason why a field of the rule cannot be checked; at is "" for the whole
// rule.
func (t *translation) problem(at string, err error) {
	field := fmt.Sprintf("spec.rules[%d]", t.rule)
	if at != "" {
		field += "." + at
	}
	t.problems = append(t.problems, Problem{Field: field, Err: err, HTTP: errors.Is(err, errHTTP)})
}

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

// nothing never matches.
func (s side[M]) nothing() M { return s.not(s.everything()) }

// anyOf returns the disjunction of a list, which must not be empty.
func (s side[M]) anyOf(list []M) M {
	if len(list) == 1 {
		return list[0]
	}
	return s.or(list)
}
