// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	meshconfig "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"
)

// policyOf parses a policy.
func policyOf(t *testing.T, text string) Policy {
	t.Helper()
	spec := &security.AuthorizationPolicy{}
	if err := protojson.Unmarshal([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return Policy{Namespace: "shop", Name: "p", Spec: spec}
}

// translated returns the rule with a name in a policy's translation, or nil, and the fields that
// cannot be checked.
func translated(t *testing.T, tr Translator, p Policy) (rule *rbacv3.Policy, fields []string) {
	t.Helper()
	tr.Problem = func(_ Policy, problem Problem) {
		fields = append(fields, fmt.Sprintf("%s: %t", problem.Field, problem.HTTP))
	}
	rules := tr.Rules(p.Spec.GetAction(), []Policy{p})
	if rules.Enforced == nil {
		t.Fatal("nothing is enforced")
	}
	return rules.Enforced.GetPolicies()["ns[shop]-policy[p]-rule[0]"], fields
}

// TestFailsClosed: a part that cannot be checked allows nothing, does not keep the other parts of a
// rule from denying, and is reported.
func TestFailsClosed(t *testing.T) {
	good := `{"operation": {"methods": ["GET"]}}`
	for name, tc := range map[string]struct {
		rule   string
		form   Form
		fields []string
	}{
		"an address": {
			`{"from": [{"source": {"ipBlocks": ["10.0.0.1", "x"]}}], "to": [` + good + `]}`, HTTP, []string{"spec.rules[0].from[0].source.ipBlocks: false"},
		},
		"a negative range": {
			`{"from": [{"source": {"notRemoteIpBlocks": ["10.0.0.0/99"]}}], "to": [` + good + `]}`, HTTP,
			[]string{"spec.rules[0].from[0].source.notRemoteIpBlocks: false"},
		},
		"a port":       {`{"to": [{"operation": {"ports": ["65536"], "methods": ["GET"]}}]}`, HTTP, []string{"spec.rules[0].to[0].operation.ports: false"}},
		"an account":   {`{"from": [{"source": {"serviceAccounts": ["a/b/c"]}}], "to": [` + good + `]}`, HTTP, []string{"spec.rules[0].from[0].source.serviceAccounts: false"}},
		"an attribute": {`{"to": [` + good + `], "when": [{"key": "request.headersx[a]", "values": ["b"]}]}`, HTTP, []string{"spec.rules[0].when[0].key: false"}},
		"an empty name": {
			`{"to": [` + good + `], "when": [{"key": "request.auth.claims[a][]", "values": ["b"]}]}`, HTTP, []string{"spec.rules[0].when[0].key: false"},
		},
		"a value": {`{"to": [` + good + `], "when": [{"key": "source.ip", "notValues": ["b"]}]}`, HTTP, []string{"spec.rules[0].when[0].notValues: false"}},
		"a template without a slash": {
			`{"to": [{"operation": {"paths": ["{**}"], "methods": ["GET"]}}]}`, HTTP, []string{"spec.rules[0].to[0].operation.paths: false"},
		},
		"an empty segment": {
			`{"to": [{"operation": {"notPaths": ["//{*}"], "methods": ["GET"]}}]}`, HTTP, []string{"spec.rules[0].to[0].operation.notPaths: false"},
		},
		"a template of other characters": {
			`{"to": [{"operation": {"paths": ["/*/{*}"], "methods": ["GET"]}}]}`, HTTP, []string{"spec.rules[0].to[0].operation.paths: false"},
		},
		"operators after the last one": {
			`{"to": [{"operation": {"paths": ["/{**}/{*}"], "methods": ["GET"]}}]}`, HTTP, []string{"spec.rules[0].to[0].operation.paths: false"},
		},
		"a path of a connection": {
			`{"from": [{"source": {"namespaces": ["a"]}}], "to": [{"operation": {"paths": ["/a"], "ports": ["80"]}}]}`, TCP,
			[]string{"spec.rules[0].to[0].operation.paths: true"},
		},
		"a token of a connection": {
			`{"from": [{"source": {"notRequestPrincipals": ["*"]}}]}`, TCP, []string{"spec.rules[0].from[0].source.notRequestPrincipals: true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := Translator{Form: tc.form}
			allowed, fields := translated(t, tr, policyOf(t, `{"action": "ALLOW", "rules": [`+tc.rule+`]}`))
			if allowed != nil {
				t.Errorf("it allows %v", allowed)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
			denied, fields := translated(t, tr, policyOf(t, `{"action": "DENY", "rules": [`+tc.rule+`]}`))
			if denied == nil {
				t.Fatal("it denies nothing")
			}
			for _, left := range []string{"GET", "/ns/a/", "80"} { // the other parts are still checked
				if here := strings.Contains(tc.rule, `"GET"`) && left == "GET" || strings.Contains(tc.rule, `["a"]`) && left != "GET"; here != strings.Contains(protojson.Format(denied), left) {
					t.Errorf("%s is in it: %t: %v", left, !here, denied)
				}
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("reported of DENY (-want +got):\n%s", diff)
			}
		})
	}
}

// TestZones: an address with a zone, which validation accepts, is matched without the zone.
func TestZones(t *testing.T) {
	rule, fields := translated(t, Translator{}, policyOf(t, `{"action": "DENY", "rules": [{"from": [{"source": {"ipBlocks": ["fe80::1%eth0"]}}]}]}`))
	if got := rule.GetPrincipals()[0].GetDirectRemoteIp(); got.GetAddressPrefix() != "fe80::1" || got.GetPrefixLen().GetValue() != 128 || len(fields) > 0 {
		t.Errorf("it denies %v, and does not check %q", rule, fields)
	}
}

// TestPathPrefix: a provider is not asked with a prefix for which Envoy rejects the listener.
func TestPathPrefix(t *testing.T) {
	for prefix, want := range map[string]bool{"": true, "/check": true, "check": false} {
		p := Provider{HTTP: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider{PathPrefix: prefix}}
		if _, err := p.HTTPAuthz(); (err == nil) != want {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

// TestRefusedParts: a rule that cannot be sent allows nothing, or denies everything, and so does a
// closed policy.
func TestRefusedParts(t *testing.T) {
	rule := `{"to": [{"operation": {"methods": ["GET"]}}]}`
	refuse := Translator{Check: func(proto.Message) error { return errors.New("no") }}
	allow, deny := policyOf(t, `{"action": "ALLOW", "rules": [`+rule+`]}`), policyOf(t, `{"action": "DENY", "rules": [`+rule+`]}`)
	if got, fields := translated(t, refuse, allow); got != nil || !slices.Equal(fields, []string{"spec.rules[0]: false"}) {
		t.Errorf("ALLOW: %v, %q", got, fields)
	}
	if got, fields := translated(t, refuse, deny); !proto.Equal(got, everything()) || len(fields) != 1 {
		t.Errorf("DENY: %v, %q", got, fields)
	}
	allow.Closed, deny.Closed = true, true
	if got, _ := translated(t, Translator{}, allow); !proto.Equal(got, nothing()) {
		t.Errorf("closed ALLOW: %v", got)
	}
	if got, _ := translated(t, Translator{}, deny); !proto.Equal(got, everything()) {
		t.Errorf("closed DENY: %v", got)
	}
}

// TestKept: a policy with a cache is translated once in each form, and reports its problems each
// time.
func TestKept(t *testing.T) {
	checked := 0
	count := Translator{Check: func(proto.Message) error { checked++; return errors.New("no") }}
	p := policyOf(t, `{"action": "DENY", "rules": [{"to": [{"operation": {"methods": ["GET"]}}]}]}`)
	p.Kept = &Translations{}
	for range 3 {
		for _, form := range []Form{HTTP, TCP} {
			count.Form = form
			if got, fields := translated(t, count, p); !proto.Equal(got, everything()) || len(fields) == 0 {
				t.Errorf("form %d: %v, %q", form, got, fields)
			}
		}
	}
	if checked != 2 {
		t.Errorf("it was checked %d times", checked)
	}
	p.Closed, p.Spec.Action = true, security.AuthorizationPolicy_ALLOW
	if got, _ := translated(t, count, p); !proto.Equal(got, nothing()) {
		t.Errorf("closed: %v", got)
	}
}

// TestNames: different policies have different names, for all their names, and so have different
// providers.
func TestNames(t *testing.T) {
	a := policyOf(t, `{"action": "DENY", "rules": [{}]}`)
	b := a
	a.Namespace, a.Name, b.Namespace, b.Name = "istio", "system-deny", "istio-system", "deny"
	if n := len((Translator{}).Rules(security.AuthorizationPolicy_DENY, []Policy{a, b}).Enforced.GetPolicies()); n != 2 {
		t.Errorf("%d policies of 2", n)
	}
	short, long := Provider{Name: "a"}.policyPrefix()+"ns[", Provider{Name: "a-b"}.policyPrefix()+"ns["
	if strings.HasPrefix(long, short) {
		t.Errorf("%s begins with %s", long, short)
	}
}

// TestTrust: the trust domains of the mesh are equivalent in complete identities.
func TestTrust(t *testing.T) {
	trust := Trust{Domain: "td", Aliases: []string{"old.td"}}
	for value, want := range map[string][]string{
		"td/ns/a/sa/b":            {"td/ns/a/sa/b", "old.td/ns/a/sa/b"},
		"old.td/ns/a/sa/b":        {"td/ns/a/sa/b", "old.td/ns/a/sa/b"},
		"cluster.local/ns/a/sa/b": {"td/ns/a/sa/b", "old.td/ns/a/sa/b"},
		"*.td/ns/a/sa/b":          {"td/ns/a/sa/b", "*.td/ns/a/sa/b"},
		"old*/ns/a/sa/b":          {"td/ns/a/sa/b", "old.td/ns/a/sa/b"},
		"other/ns/a/sa/b":         {"other/ns/a/sa/b"},
		"*/ns/a/sa/b":             {"*/ns/a/sa/b"},
		"td/*":                    {"td/*"},
		"*":                       {"*"},
	} {
		if diff := cmp.Diff(want, trust.principals([]string{value})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
	if diff := cmp.Diff([]string{"td", "old.td", "x"}, trust.trustDomains([]string{"old.td", "td", "x"})); diff != "" {
		t.Errorf("trust domains (-want +got):\n%s", diff)
	}
}

// TestProviders: a provider that cannot be asked denies, and an invalid status is an error.
func TestProviders(t *testing.T) {
	p := policyOf(t, `{"action": "CUSTOM", "provider": {"name": "x"}, "rules": [{"to": [{"operation": {"paths": ["/a"]}}]}]}`)
	rules := (Translator{}).Custom(Provider{Name: "x", Err: errors.New("gone")}, []Policy{p})
	if rules.DryRun != nil || rules.Enforced.GetAction() != rbacv3.RBAC_DENY || len(rules.Enforced.GetPolicies()) != 1 {
		t.Errorf("rules %v", rules)
	}
	rules = (Translator{}).Custom(Provider{Name: "x"}, []Policy{p})
	if rules.Enforced != nil || len(rules.DryRun.GetPolicies()) != 1 {
		t.Errorf("rules %v", rules)
	}
	for code, ok := range map[string]bool{"": true, "503": true, "0": false, "99": false, "x": false, "4294967799": false} {
		if _, err := statusOf(code); (err == nil) != ok {
			t.Errorf("%q: %v", code, err)
		}
	}
}

// FuzzRules: for all values of a policy, an ALLOW rule with a problem allows nothing, a DENY rule
// exists, and the result can be encoded.
func FuzzRules(f *testing.F) {
	f.Add("source.ip", "10.0.0.1", "x")
	f.Add("request.headers[a]", "a*", "*")
	f.Add("request.auth.claims[a][b]", "*b", "[")
	f.Add("experimental.envoy.filters.a[b]", "[x]", "")
	f.Fuzz(func(t *testing.T, key, value, other string) {
		rule := &security.Rule{
			From: []*security.Rule_From{{Source: &security.Source{
				Principals: []string{value}, NotNamespaces: []string{other}, RequestPrincipals: []string{other}, ServiceAccounts: []string{value},
			}}},
			To:   []*security.Rule_To{{Operation: &security.Operation{Hosts: []string{value}, NotPaths: []string{other}, Ports: []string{other}}}},
			When: []*security.Condition{{Key: key, Values: []string{value}, NotValues: []string{other}}},
		}
		for _, form := range []Form{HTTP, TCP} {
			for _, action := range []security.AuthorizationPolicy_Action{security.AuthorizationPolicy_ALLOW, security.AuthorizationPolicy_DENY} {
				p := Policy{Namespace: "shop", Name: "p", Spec: &security.AuthorizationPolicy{Action: action, Rules: []*security.Rule{rule}}}
				got, fields := translated(t, Translator{Form: form}, p)
				if allows := action == security.AuthorizationPolicy_ALLOW; (got == nil) != (allows && len(fields) > 0) {
					t.Errorf("%v of form %d: %v, problems %q", action, form, got, fields)
				}
				again, _ := translated(t, Translator{Form: form}, p)
				if diff := cmp.Diff(got, again, protocmp.Transform()); diff != "" {
					t.Errorf("again (-first +second):\n%s", diff)
				}
			}
		}
	})
}

// TestTemplatesOfUnusualPaths: where a mismatch admits a call, a path template also matches paths
// that begin and end like it and contain characters that no template of Envoy accepts.
func TestTemplatesOfUnusualPaths(t *testing.T) {
	for text, wide := range map[string]bool{
		`{"action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/a/{*}/b"]}}]}]}`:     true,
		`{"action": "DENY", "rules": [{"to": [{"operation": {"notPaths": ["/a/{*}/b"]}}]}]}`:  false,
		`{"action": "ALLOW", "rules": [{"to": [{"operation": {"paths": ["/a/{*}/b"]}}]}]}`:    false,
		`{"action": "ALLOW", "rules": [{"to": [{"operation": {"notPaths": ["/a/{*}/b"]}}]}]}`: true,
		`{"action": "CUSTOM", "rules": [{"to": [{"operation": {"paths": ["/a/{*}/b"]}}]}]}`:   true,
	} {
		rule, _ := translated(t, Translator{}, policyOf(t, text))
		got := rule.GetPermissions()[0]
		if not := got.GetNotRule(); not != nil {
			got = not
		}
		if (len(got.GetOrRules().GetRules()) == 2) != wide {
			t.Errorf("%s becomes %v", text, got)
		}
		if wide {
			got = got.GetOrRules().GetRules()[0]
		}
		if got.GetUriTemplate() == nil {
			t.Errorf("%s becomes %v", text, got)
		}
	}
}
