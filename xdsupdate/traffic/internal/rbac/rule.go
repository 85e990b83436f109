// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"errors"
	"fmt"

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
