// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"testing"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
)

// TestForServer: a part that a server cannot check allows nothing, and denies more. All servers
// know all parts of the rules.
func TestForServer(t *testing.T) {
	t.Parallel()
	const nobody, everybody = `{"permissions":[{"notRule":{"any":true}}],"principals":[{"notId":{"any":true}}]}`, `{"permissions":[{"any":true}],"principals":[{"any":true}]}`
	header := func(matcher string) string {
		return `{"permissions":[{"any":true}],"principals":[{"header":` + matcher + `}]}`
	}
	when := func(key, value string) string { return `{"when":[{"key":"` + key + `","values":["` + value + `"]}]}` }
	path := func(regex string) string {
		return `{"permissions":[{"urlPath":{"path":{"safeRegex":{"regex":"` + regex + `"}}}}],"principals":[{"any":true}]}`
	}
	for name, tc := range map[string]struct {
		rule, deny, allow string
		form              Form
	}{
		"a reserved header":      {when("request.headers[GRPC-Timeout]", "1S"), everybody, nobody, GRPC},
		"a header of HTTP/2":     {when("request.headers[TE]", "trailers"), everybody, nobody, GRPC},
		"the scheme":             {when("request.headers[:scheme]", "*"), everybody, nobody, GRPC},
		"a header in capitals":   {when("request.headers[X-A]", "a*"), header(`{"name":"x-a","prefixMatch":"a"}`), header(`{"name":"x-a","prefixMatch":"a"}`), GRPC},
		"the host":               {when("request.headers[Host]", "a"), header(`{"name":":authority","exactMatch":"a"}`), header(`{"name":":authority","exactMatch":"a"}`), GRPC},
		"a template":             {`{"to":[{"operation":{"paths":["/a.b/{*}/{**}"]}}]}`, path(`/a\\.b/[^/]+/.*`), path(`/a\\.b/[^/]+/.*`), GRPC},
		"a port to grpc-js":      {when("destination.port", "80"), everybody, nobody, GRPCNode},
		"an address to grpc-js":  {when("source.ip", "10.0.0.1"), everybody, nobody, GRPCNode},
		"an address of no use":   {when("source.ip", "x"), everybody, nobody, GRPC},
		"a header that is there": {when("request.headers[a]", "*"), header(`{"name":"a","safeRegexMatch":{"regex":".*"}}`), header(`{"name":"a","safeRegexMatch":{"regex":".*"}}`), GRPC},
		"a header of each call":  {when("request.headers[host]", "*"), header(`{"name":":authority","presentMatch":true}`), header(`{"name":":authority","presentMatch":true}`), GRPC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for action, want := range map[string]string{"DENY": tc.deny, "ALLOW": tc.allow} {
				p := policyOf(t, `{"action":"`+action+`","rules":[`+tc.rule+`]}`)
				deny, allow := Translator{Form: tc.form}.ForServer([]Policy{p})
				rules := deny
				if action == "ALLOW" {
					rules = allow
				}
				wanted := &rbacv3.Policy{}
				if err := protojson.Unmarshal([]byte(want), wanted); err != nil {
					t.Fatal(err)
				}
				if len(rules.GetPolicies()) != 1 {
					t.Fatalf("%s: %d policies", action, len(rules.GetPolicies()))
				}
				for _, got := range rules.GetPolicies() {
					if !proto.Equal(got, wanted) {
						t.Errorf("%s: %v, want %v", action, got, wanted)
					}
					if err := envoycheck.GRPC(got); err != nil {
						t.Errorf("%s: %v", action, err)
					}
				}
			}
		})
	}
}

// TestUnknownToServers: what a server does not know of a call matches as if it were absent, by parts
// that all servers read. Before 1.82.1, grpc-go leaves metadata and server names out of the parts
// around them, which thus match more, and ends at one in a negation (GHSA-hrxh-6v49-42gf).
func TestUnknownToServers(t *testing.T) {
	t.Parallel()
	const nobody, never, anybody, always = `{"notId":{"any":true}}`, `{"notRule":{"any":true}}`, `{"any":true}`, `{"any":true}`
	const token = `{"andIds":{"ids":[` + nobody + `,` + nobody + `]}}`
	for name, tc := range map[string]struct{ rule, permission, principal string }{
		"a claim":             {`{"when":[{"key":"request.auth.claims[a][b]","values":["c"]}]}`, always, nobody},
		"other claims":        {`{"when":[{"key":"request.auth.audiences","notValues":["c","*"]}]}`, always, `{"notId":` + nobody + `}`},
		"a token":             {`{"from":[{"source":{"requestPrincipals":["*"]}}]}`, always, token},
		"no token":            {`{"from":[{"source":{"notRequestPrincipals":["*"]}}]}`, always, `{"notId":` + token + `}`},
		"metadata":            {`{"when":[{"key":"experimental.a[b]","values":["c"]}]}`, never, anybody},
		"other metadata":      {`{"when":[{"key":"experimental.a[b]","notValues":["c"]}]}`, `{"notRule":` + never + `}`, anybody},
		"a server name":       {`{"when":[{"key":"connection.sni","values":["*.com"]}]}`, never, anybody},
		"no server name":      {`{"when":[{"key":"connection.sni","notValues":["*"]}]}`, `{"notRule":` + never + `}`, anybody},
		"an empty name":       {`{"when":[{"key":"connection.sni","values":[""]}]}`, always, anybody},
		"a port and metadata": {`{"to":[{"operation":{"ports":["80"]}}],"when":[{"key":"experimental.a[b]","values":["c"]}]}`, `{"andRules":{"rules":[{"destinationPort":80},` + never + `]}}`, anybody},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := &rbacv3.Policy{}
			if err := protojson.Unmarshal([]byte(`{"permissions":[`+tc.permission+`],"principals":[`+tc.principal+`]}`), want); err != nil {
				t.Fatal(err)
			}
			deny, _ := Translator{}.ForServer([]Policy{policyOf(t, `{"action":"DENY","rules":[`+tc.rule+`]}`)})
			_, allow := Translator{}.ForServer([]Policy{policyOf(t, `{"action":"ALLOW","rules":[`+tc.rule+`]}`)})
			for _, rules := range []*rbacv3.RBAC{deny, allow} {
				for _, got := range rules.GetPolicies() {
					if !proto.Equal(got, want) {
						t.Errorf("%v: %v, want %v", rules.GetAction(), got, want)
					}
				}
			}
		})
	}
}

// TestForServerActions: CUSTOM denies, AUDIT and dry runs do nothing, and an ALLOW policy without
// rules allows nothing (S1 to S5).
func TestForServerActions(t *testing.T) {
	t.Parallel()
	custom := policyOf(t, `{"action":"CUSTOM","provider":{"name":"a"},"rules":[{}]}`)
	audit := policyOf(t, `{"action":"AUDIT","rules":[{}]}`)
	tried := policyOf(t, `{"action":"DENY","rules":[{}]}`)
	tried.DryRun = true
	empty := policyOf(t, `{}`)
	for _, tc := range []struct {
		policies    []Policy
		deny, allow bool
	}{{[]Policy{custom}, true, false}, {[]Policy{audit, tried}, false, false}, {[]Policy{empty}, false, true}} {
		deny, allow := Translator{}.ForServer(tc.policies)
		if (deny != nil) != tc.deny || (allow != nil) != tc.allow {
			t.Errorf("%v: denies %v, allows %v", tc.policies, deny, allow)
		}
	}
	_, allow := Translator{}.ForServer([]Policy{empty})
	if all := slices.Collect(func(yield func(*rbacv3.Policy) bool) {
		for _, p := range allow.GetPolicies() {
			yield(p)
		}
	}); len(all) != 1 || !proto.Equal(all[0], nothing()) {
		t.Errorf("an ALLOW policy without rules allows %v", all)
	}
}
