// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"errors"
	"fmt"
	"slices"

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

// translation is that of one policy.
type translation struct {
	form  Form
	trust Trust
	// namespace is that of the policy.
	namespace string
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
func (t *translation) policy(at string, rule *security.Rule) *rbacv3.Policy {
	known := len(t.problems)
	of, to := t.conditions(at, rule)
	sources := [][]field[*rbacv3.Principal]{nil}
	if len(rule.GetFrom()) > 0 {
		sources = sources[:0]
		for i, s := range rule.GetFrom() {
			sources = append(sources, t.sourceFields(fmt.Sprintf("%s.from[%d].source", at, i), s.GetSource()))
		}
	}
	operations := [][]field[*rbacv3.Permission]{nil}
	if len(rule.GetTo()) > 0 {
		operations = operations[:0]
		for i, o := range rule.GetTo() {
			operations = append(operations, t.operationFields(fmt.Sprintf("%s.to[%d].operation", at, i), o.GetOperation()))
		}
	}
	p := &rbacv3.Policy{
		Principals:  alternatives(t, principals(), sources, of),
		Permissions: alternatives(t, permissions(), operations, to),
	}
	if t.strict && len(t.problems) > known {
		return nil
	}
	return p
}

// conditions returns the conditions of a rule, of both sides.
func (t *translation) conditions(at string, rule *security.Rule) (of []field[*rbacv3.Principal], to []field[*rbacv3.Permission]) {
	for i, c := range rule.GetWhen() {
		place := fmt.Sprintf("%s.when[%d]", at, i)
		f, g, err := t.conditionFields(place, c)
		if err != nil {
			t.problem(place+".key", err)
			continue
		}
		of, to = append(of, f), append(to, g)
	}
	return of, to
}

func (t *translation) problem(at string, err error) {
	t.problems = append(t.problems, Problem{Field: at, Err: err, HTTP: errors.Is(err, errHTTP)})
}

// alternatives returns what matches one of several lists of fields, with the conditions.
func alternatives[M any](t *translation, s side[M], lists [][]field[M], when []field[M]) []M {
	conditions := collect(t, s, when)
	out := make([]M, 0, len(lists))
	for _, list := range lists {
		out = append(out, s.allOf(slices.Concat(collect(t, s, list), conditions)))
	}
	return out
}

// collect returns what fields demand, but for those that cannot be checked.
func collect[M any](t *translation, s side[M], list []field[M]) (out []M) {
	for _, f := range list {
		m, at, err := f.demands(s, t.form, t.strict)
		if err != nil {
			t.problem(at, err)
			continue
		}
		out = append(out, m...)
	}
	return out
}
