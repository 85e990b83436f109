// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"
)

// ruleReader reads the rules of a policy for a call.
type ruleReader struct {
	of     *Authorization
	policy *AuthorizationPolicy
	call   Call
}

// matches reports whether a rule matches the call: one of its sources, one of its operations, and
// all of its conditions. HTTP attributes of a connection are unknown: an ALLOW rule with such
// attributes does not match, and rules of other actions match by their remaining attributes (S41,
// S42).
func (r ruleReader) matches(rule *security.Rule) bool {
	if r.call.Request == nil && r.policy.GetAction() == security.AuthorizationPolicy_ALLOW && isOfHTTP(rule) {
		return false
	}
	return (len(rule.GetFrom()) == 0 || slices.ContainsFunc(rule.GetFrom(), r.from)) &&
		(len(rule.GetTo()) == 0 || slices.ContainsFunc(rule.GetTo(), r.to)) &&
		!slices.ContainsFunc(rule.GetWhen(), func(c *security.Condition) bool { return !r.when(c) })
}

func isOfHTTP(rule *security.Rule) bool {
	return slices.ContainsFunc(rule.GetFrom(), func(f *security.Rule_From) bool {
		return len(f.GetSource().GetRequestPrincipals())+len(f.GetSource().GetNotRequestPrincipals()) > 0
	}) || slices.ContainsFunc(rule.GetTo(), func(t *security.Rule_To) bool {
		o := t.GetOperation()
		return len(o.GetHosts())+len(o.GetNotHosts())+len(o.GetMethods())+len(o.GetNotMethods())+len(o.GetPaths())+len(o.GetNotPaths()) > 0
	}) || slices.ContainsFunc(rule.GetWhen(), func(c *security.Condition) bool { return strings.HasPrefix(c.GetKey(), "request.") })
}

// holds reports whether a field matches: one of values, if there are any, and no element of not.
// HTTP fields always match connections.
func (r ruleReader) holds(http bool, values, not []string, is func(value string) bool) bool {
	if http && r.call.Request == nil {
		return true
	}
	return (len(values) == 0 || slices.ContainsFunc(values, is)) && !slices.ContainsFunc(not, is)
}

func (r ruleReader) from(f *security.Rule_From) bool {
	s := f.GetSource()
	return r.holds(false, s.GetPrincipals(), s.GetNotPrincipals(), r.principal) &&
		r.holds(true, s.GetRequestPrincipals(), s.GetNotRequestPrincipals(), r.requestPrincipal) &&
		r.holds(false, s.GetNamespaces(), s.GetNotNamespaces(), r.namespace) &&
		r.holds(false, s.GetServiceAccounts(), s.GetNotServiceAccounts(), r.serviceAccount) &&
		r.holds(false, s.GetTrustDomains(), s.GetNotTrustDomains(), r.trustDomain) &&
		r.holds(false, s.GetIpBlocks(), s.GetNotIpBlocks(), inside(r.call.From)) &&
		r.holds(false, s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks(), inside(r.call.Client))
}

func (r ruleReader) to(t *security.Rule_To) bool {
	o := t.GetOperation()
	return r.holds(true, o.GetHosts(), o.GetNotHosts(), r.host) &&
		r.holds(false, o.GetPorts(), o.GetNotPorts(), r.port) &&
		r.holds(true, o.GetMethods(), o.GetNotMethods(), r.method) &&
		r.holds(true, o.GetPaths(), nil, r.pathOf(r.policy.GetAction() != security.AuthorizationPolicy_ALLOW)) &&
		r.holds(true, nil, o.GetNotPaths(), r.pathOf(r.policy.GetAction() == security.AuthorizationPolicy_ALLOW))
}

// when evaluates a condition. The keys are those of "Authorization Policy Conditions".
func (r ruleReader) when(c *security.Condition) bool {
	http, is := strings.HasPrefix(c.GetKey(), "request."), func(string) bool { return false }
	switch key := c.GetKey(); key {
	case "source.ip":
		is = inside(r.call.From)
	case "remote.ip":
		is = inside(r.call.Client)
	case "destination.ip":
		is = inside(r.call.To.Addr())
	case "destination.port":
		is = r.port
	case "source.principal":
		is = r.principal
	case "source.namespace":
		is = r.namespace
	case "source.serviceAccount":
		is = r.serviceAccount
	case "source.trustDomain":
		is = r.trustDomain
	case "connection.sni":
		is = func(v string) bool { return wildcard(v, r.call.ServerName) }
	case "request.auth.principal":
		is = r.requestPrincipal
	case "request.auth.audiences":
		is = r.claim("aud")
	case "request.auth.presenter":
		is = r.claim("azp")
	default:
		name := strings.TrimSuffix(key[strings.IndexByte(key, '[')+1:], "]")
		switch {
		case strings.HasPrefix(key, "request.headers["):
			is = r.headerIs(name)
		case strings.HasPrefix(key, "request.auth.claims["):
			is = r.claim(strings.Split(name, "][")...)
		case strings.HasPrefix(key, "experimental."):
			is = r.found(strings.TrimPrefix(key[:strings.IndexByte(key, '[')], "experimental."), name)
		}
	}
	return r.holds(http, c.GetValues(), c.GetNotValues(), is)
}

// wildcard compares a text with a value: "*" any but an empty one, "abc*" what begins so, "*abc" what
// ends so. Other stars are stars (S47).
func wildcard(value, text string) bool {
	switch {
	case value == "*":
		return text != ""
	case strings.HasPrefix(value, "*"):
		return strings.HasSuffix(text, value[1:])
	case strings.HasSuffix(value, "*"):
		return strings.HasPrefix(text, value[:len(value)-1])
	default:
		return text == value
	}
}

// inside returns whether an address is the one of a value, or in its range.
func inside(a netip.Addr) func(string) bool {
	return func(value string) bool {
		if p, err := netip.ParsePrefix(value); err == nil {
			return p.Contains(a)
		}
		one, err := netip.ParseAddr(value)
		return err == nil && one == a
	}
}

func (r ruleReader) port(value string) bool { return value == strconv.Itoa(int(r.call.To.Port())) }

func (r ruleReader) method(value string) bool { return wildcard(value, r.call.Method) }

// host is compared with its port, in any case (S49). The star is any, even none (S48).
func (r ruleReader) host(value string) bool {
	return value == "*" || wildcard(strings.ToLower(value), strings.ToLower(r.call.Authority))
}

// pathOf compares the path. Envoy's templates do not match all characters. If a mismatch would
// admit the request (wide), a path with such characters matches a template with the same beginning
// and end; otherwise it matches no template.
func (r ruleReader) pathOf(wide bool) func(string) bool {
	return func(value string) bool {
		path := r.call.path()
		before, _, ok := strings.Cut(value, "{")
		switch {
		case !ok:
			return wildcard(value, path)
		case r.of.anyPathCharacter || !strings.ContainsAny(path, `[]|"<>{}^\`+"`"):
			return fills(value, path)
		default:
			return wide && strings.HasPrefix(path, before) && strings.HasSuffix(path, value[strings.LastIndexByte(value, '}')+1:])
		}
	}
}

// fills reports whether a path is of a template: "{*}" is any text without a slash, but not none,
// and "{**}" any at all.
func fills(template, path string) bool {
	before, after, ok := strings.Cut(template, "{")
	rest, starts := strings.CutPrefix(path, before)
	if !starts || !ok {
		return starts && rest == ""
	}
	operator, after, _ := strings.Cut(after, "}")
	for i := range len(rest) + 1 {
		taken := rest[:i]
		if operator == "*" && (taken == "" || strings.Contains(taken, "/")) {
			continue
		}
		if fills(after, rest[i:]) {
			return true
		}
	}
	return false
}

// headerIs compares a header, whose name is in any case. The star is any, even an empty one (S48).
func (r ruleReader) headerIs(name string) func(string) bool {
	return func(value string) bool {
		got, ok := r.call.header(name)
		return ok && (value == "*" || wildcard(value, got))
	}
}

// found compares a value with the metadata of a filter; "[v]" is an element of a list.
func (r ruleReader) found(filter, key string) func(string) bool {
	return func(value string) bool {
		got := r.call.Metadata[filter][key]
		if strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]") {
			list, _ := got.([]any)
			return slices.ContainsFunc(list, func(v any) bool { return isText(value[1:len(value)-1], v) })
		}
		return isText(value, got)
	}
}

func isText(value string, v any) bool {
	text, ok := v.(string)
	return ok && wildcard(value, text)
}
