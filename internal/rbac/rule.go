// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"errors"
	"fmt"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	security "istio.io/api/security/v1beta1"
)

// Form is what is checked.
type Form uint8

const (
	// HTTP are the requests that an Envoy serves.
	HTTP Form = iota
	// TCP are connections, of which no request is known.
	TCP
	// GRPC are the calls that a gRPC server serves.
	GRPC
	// GRPCNode are those that a server of grpc-js serves, which does not know between which addresses
	// and ports a connection is (grpc-js 1.14).
	GRPCNode

	// forms is how many there are.
	forms = iota
)

// errHTTP is why a field cannot be checked of a connection.
var errHTTP = errors.New("is of HTTP requests, and is not known of TCP connections")

// translation is that of one rule of a policy.
type translation struct {
	form  Form
	trust Trust
	// unverified: as of Translator.
	unverified bool
	// namespace is that of the policy, rule the index of the rule.
	namespace string
	rule      int
	// strict: a rule of which a part cannot be checked matches nothing. Else that part is left out.
	strict   bool
	problems []Problem
}

// Problem is a part of a policy that cannot be checked where it should be.
type Problem struct {
	// Field is the part, such as "spec.rules[0].to[1].operation.paths".
	Field string
	Err   error
	// HTTP: it cannot be checked of TCP connections, and else is good.
	HTTP bool
}

// policy returns what a rule matches; nil: nothing.
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

// conditions returns what the conditions of a rule demand, of both sides.
func (t *translation) conditions(rule *security.Rule) (of []*rbacv3.Principal, to []*rbacv3.Permission) {
	for i, c := range rule.GetWhen() {
		source := demands[*rbacv3.Principal]{translation: t, side: principals(), list: "when", index: i}
		operation := demands[*rbacv3.Permission]{translation: t, side: permissions(), list: "when", index: i}
		t.condition(&source, &operation, c)
		of, to = append(of, source.all...), append(to, operation.all...)
	}
	return of, to
}

// problem records why a place in the rule, "" for all of it, cannot be checked.
func (t *translation) problem(at string, err error) {
	field := fmt.Sprintf("spec.rules[%d]", t.rule)
	if at != "" {
		field += "." + at
	}
	t.problems = append(t.problems, Problem{Field: field, Err: err, HTTP: errors.Is(err, errHTTP)})
}
