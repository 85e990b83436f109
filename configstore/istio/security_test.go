// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"strings"
	"testing"

	"istio.io/api/annotation"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

const authorizationPolicyBase = `
selector: {matchLabels: {app: a}}
action: DENY
rules:
- {}
- from:
  - source: {principals: ["cluster.local/*"], requestPrincipals: ["*"], namespaces: [prod], ipBlocks: [10.0.0.1, 10.0.0.0/8], notRemoteIpBlocks: ["2001:db8::/32"]}
  - source: {serviceAccounts: [default, prod/default]}
  to:
  - operation: {hosts: [a.example.com], ports: ["80"], methods: [GET], paths: [/a*, "/foo/{*}/bar/{**}"]}
  when:
  - {key: "request.headers[x-a]", values: [b]}
  - {key: "request.auth.claims[a][b]", notValues: [c]}
  - {key: source.ip, values: [10.0.0.0/8]}
  - {key: destination.port, values: ["80"]}
  - {key: connection.sni, values: [a]}
  - {key: "experimental.envoy.filters.network.mysql_proxy[a]", values: [b]}
`

func TestAuthorizationPolicy(t *testing.T) {
	testRules(t, istio.AuthorizationPolicy, authorizationPolicyBase, []ruleTest{
		{name: "allow nothing", spec: `{action: ALLOW, rules: []}`},
		{
			name:       "deny nothing",
			spec:       `rules: []`,
			violations: []string{"spec.rules: must not be empty for action DENY, which would then deny nothing; [{}] denies everything"},
		},
		{
			name: "custom",
			spec: `{action: CUSTOM, provider: {name: a}}`,
			violations: []string{
				"spec.rules[1].from[0].source.principals: must not be set for action CUSTOM",
				"spec.rules[1].from[0].source.requestPrincipals: must not be set for action CUSTOM",
				"spec.rules[1].from[0].source.namespaces: must not be set for action CUSTOM",
				"spec.rules[1].from[1].source.serviceAccounts: must not be set for action CUSTOM",
				`spec.rules[1].when[1].key: must not be an identity for action CUSTOM, is "request.auth.claims[a][b]"`,
			},
		},
		{
			name: "custom without anything",
			spec: `{action: CUSTOM, rules: []}`,
			violations: []string{
				"spec.provider.name: is required for action CUSTOM",
				"spec.rules: must not be empty for action CUSTOM",
			},
		},
		{
			name:       "provider without custom",
			spec:       `provider: {name: a}`,
			violations: []string{"spec.provider: must not be set for action DENY, only for CUSTOM"},
		},
		{
			name:       "unknown action",
			spec:       `action: 9`,
			violations: []string{"spec.action: must be one of ALLOW, DENY, AUDIT, CUSTOM, is 9"},
		},
		{
			name: "empty parts",
			spec: `rules: [{from: [{}, {source: {}}], to: [{}, {operation: {}}], when: [{}]}]`,
			violations: []string{
				"spec.rules[0].from[0].source: is required",
				"spec.rules[0].from[1].source: must not be empty",
				"spec.rules[0].to[0].operation: is required",
				"spec.rules[0].to[1].operation: must not be empty",
				"spec.rules[0].when[0]: must have one of values, notValues",
				"spec.rules[0].when[0].key: is required",
			},
			warnings: []string{
				"spec.rules[0]: has only attributes of HTTP, and denies all traffic to TCP ports too; name the ports in to.operation.ports",
			},
		},
		{
			name: "sources",
			spec: `
rules:
- from:
  - source: {principals: [""], ipBlocks: ["", a], notIpBlocks: [10.0.0.0/33], remoteIpBlocks: [b], notRemoteIpBlocks: [c]}
  - source: {serviceAccounts: ["", "a*", a/b/c, /a, a/], notNamespaces: [n]}
  - source: {notServiceAccounts: [` + strings.Repeat("a,", 16) + strings.Repeat("b", 321) + `]}`,
			violations: []string{
				"spec.rules[0].from[0].source.principals[0]: must not be empty",
				"spec.rules[0].from[0].source.ipBlocks[0]: must not be empty",
				`spec.rules[0].from[0].source.ipBlocks[1]: must be an IP address or a CIDR block, is "a"`,
				`spec.rules[0].from[0].source.notIpBlocks[0]: must be an IP address or a CIDR block, is "10.0.0.0/33"`,
				`spec.rules[0].from[0].source.remoteIpBlocks[0]: must be an IP address or a CIDR block, is "b"`,
				`spec.rules[0].from[0].source.notRemoteIpBlocks[0]: must be an IP address or a CIDR block, is "c"`,
				"spec.rules[0].from[1].source.serviceAccounts[0]: must not be empty",
				`spec.rules[0].from[1].source.serviceAccounts[1]: must not contain a wildcard, is "a*"`,
				`spec.rules[0].from[1].source.serviceAccounts[2]: must be an account or namespace/account, is "a/b/c"`,
				`spec.rules[0].from[1].source.serviceAccounts[3]: must be an account or namespace/account, is "/a"`,
				`spec.rules[0].from[1].source.serviceAccounts[4]: must be an account or namespace/account, is "a/"`,
				"spec.rules[0].from[1].source: must not have service accounts together with principals or namespaces",
				"spec.rules[0].from[2].source.notServiceAccounts: must have at most 16 elements, has 17",
				"spec.rules[0].from[2].source.notServiceAccounts[16]: must have at most 320 characters, has 321",
			},
		},
		{
			name: "operations",
			spec: `rules: [{to: [{operation: {ports: ["0", http, "65536", "80"], notPorts: [""], methods: [""], paths: ["/*/baz/{*}", "/{**}/foo/{*}", "/foo/{*}.txt", "/foo/{**}/", "/{a}"]}}]}]`,
			violations: []string{
				"spec.rules[0].to[0].operation.notPorts[0]: must not be empty",
				"spec.rules[0].to[0].operation.methods[0]: must not be empty",
				`spec.rules[0].to[0].operation.ports[1]: must be 1–65535, is "http"`,
				`spec.rules[0].to[0].operation.ports[2]: must be 1–65535, is "65536"`,
				`spec.rules[0].to[0].operation.paths[0]: must have, beside {*} and {**}, only segments of letters, digits and -._~%!$&'()+,;:@=, is "/*/baz/{*}"`,
				`spec.rules[0].to[0].operation.paths[1]: must have {**} as its last operator, is "/{**}/foo/{*}"`,
				`spec.rules[0].to[0].operation.paths[2]: must have no braces but {*} and {**} as whole segments, is "/foo/{*}.txt"`,
				`spec.rules[0].to[0].operation.paths[4]: must have no braces but {*} and {**} as whole segments, is "/{a}"`,
			},
			warnings: []string{"spec.rules[0].to[0].operation.ports[0]: no connection has this port"},
		},
		{
			name: "conditions",
			spec: `rules: [{when: [{key: request.header, values: [a]}, {key: "request.headers[]", values: [a]}, {key: source.ip, values: [a], notValues: [b]}, {key: destination.port, notValues: ["0"]}]}]`,
			violations: []string{
				`spec.rules[0].when[0].key: must be an attribute of Istio's authorization, is "request.header"`,
				`spec.rules[0].when[1].key: must be an attribute of Istio's authorization, is "request.headers[]"`,
				`spec.rules[0].when[2].values[0]: must be an IP address or a CIDR block, is "a"`,
				`spec.rules[0].when[2].notValues[0]: must be an IP address or a CIDR block, is "b"`,
			},
			warnings: []string{"spec.rules[0].when[3].notValues[0]: no connection has this port"},
		},
	})
}

func TestPolicyTarget(t *testing.T) {
	testRules(t, istio.AuthorizationPolicy, `{action: AUDIT, targetRefs: [{kind: Service, name: a}, {kind: ServiceEntry, group: networking.istio.io, name: a}, {kind: Gateway, group: gateway.networking.k8s.io, name: a.b}]}`, []ruleTest{
		{
			name:       "selector too",
			spec:       `selector: {matchLabels: {a: b}}`,
			violations: []string{"spec.targetRefs: must not be set together with selector"},
		},
		{
			name: "selector",
			spec: `{targetRefs: [], selector: {matchLabels: {"a*": b}}}`,
			violations: []string{
				"spec.selector.matchLabels[a*]: key must not contain a wildcard",
			},
		},
		{
			name:       "two forms",
			spec:       `targetRef: {kind: Service, name: a}`,
			violations: []string{"spec.targetRef: must not be set together with targetRefs"},
		},
		{
			name: "bad references",
			spec: `targetRefs: [{}, {kind: Pod, name: a}, {kind: Service, name: a_b, namespace: other}]`,
			violations: []string{
				"spec.targetRefs[0].name: is required",
				"spec.targetRefs[0].kind: is required",
				`spec.targetRefs[1]: must be a Gateway or GatewayClass of gateway.networking.k8s.io, a Service, or a ServiceEntry of networking.istio.io, is "/Pod"`,
				`spec.targetRefs[2].name: must be an object's name (DNS labels with dots), is "a_b"`,
				`spec.targetRefs[2].namespace: must be empty: references stay within their namespace, is "other"`,
			},
		},
		{
			name:       "too many",
			spec:       `targetRefs: [` + strings.Repeat("{kind: Service, name: a},", 17) + `]`,
			violations: []string{"spec.targetRefs: must have at most 16 elements, has 17"},
		},
	})
}

func TestMetadata(t *testing.T) {
	annotated := func(name, value string) configstore.Meta {
		return configstore.Meta{Annotations: map[string]string{name: value}}
	}
	dryRun := annotation.IoIstioDryRun.Name
	testRules(t, istio.AuthorizationPolicy, authorizationPolicyBase, []ruleTest{
		{name: "dry run", meta: annotated(dryRun, "true")},
		{name: "no dry run", meta: annotated(dryRun, "false")},
		{name: "dry run of ALLOW", meta: annotated(dryRun, "true"), spec: `action: ALLOW`},
		{
			name:       "dry run of AUDIT",
			meta:       annotated(dryRun, "true"),
			spec:       `action: AUDIT`,
			violations: []string{"metadata.annotations[istio.io/dry-run]: is for the actions ALLOW and DENY only, not for AUDIT"},
		},
		{
			name:       "dry run of a sort",
			meta:       annotated(dryRun, "maybe"),
			violations: []string{`metadata.annotations[istio.io/dry-run]: must be true or false, is "maybe"`},
		},
		{
			name:       "always rejected",
			meta:       annotated("internal.istio.io/webhook-always-reject", ""),
			violations: []string{"metadata.annotations[internal.istio.io/webhook-always-reject]: asks for a refusal"},
		},
		{
			name:       "parents",
			meta:       annotated("internal.istio.io/parents", "a"),
			violations: []string{"metadata.annotations[internal.istio.io/parents]: is reserved for objects that Istio derives"},
		},
		{name: "others", meta: annotated("example.com/a", "b")},
	})
	testRules(t, istio.ServiceEntry, onePortBase, []ruleTest{{
		name:       "dry run of another kind",
		meta:       annotated(dryRun, "true"),
		violations: []string{"metadata.annotations[istio.io/dry-run]: is for AuthorizationPolicy only, not for ServiceEntry"},
	}})
}

const peerAuthenticationBase = `
selector: {matchLabels: {app: a}}
mtls: {mode: STRICT}
portLevelMtls: {"8080": {mode: DISABLE}}
`

func TestPeerAuthentication(t *testing.T) {
	testRules(t, istio.PeerAuthentication, peerAuthenticationBase, []ruleTest{
		{
			name: "empty",
			spec: `{selector: null, mtls: null, portLevelMtls: {}}`,
			violations: []string{
				"spec.portLevelMtls: must not be empty",
			},
		},
		{
			name:       "ports without a selector",
			spec:       `selector: null`,
			violations: []string{"spec.portLevelMtls: must not be set without a selector"},
		},
		{
			name: "ports and modes",
			spec: `{mtls: {mode: 9}, portLevelMtls: {"0": {}, "65536": {}, "80": {mode: 8}}}`,
			violations: []string{
				"spec.mtls.mode: must be one of UNSET, DISABLE, PERMISSIVE, STRICT, is 9",
				"spec.portLevelMtls[0]: key must be 1–65535, is 0",
				"spec.portLevelMtls[80].mode: must be one of UNSET, DISABLE, PERMISSIVE, STRICT, is 8",
				"spec.portLevelMtls[65536]: key must be 1–65535, is 65536",
			},
		},
	})
}

const requestAuthenticationBase = `
selector: {matchLabels: {app: a}}
jwtRules:
- issuer: https://example.com
  audiences: [a]
  jwksUri: https://example.com/jwks.json
  fromHeaders: [{name: x-jwt, prefix: "Bearer "}]
  fromParams: [token]
  fromCookies: [token]
  outputPayloadToHeader: x-payload
  outputClaimToHeaders: [{header: x-a, claim: a}, {header: x-b, claim: b.c}]
  timeout: 5s
  spaceDelimitedClaims: [scope]
- {issuer: other, jwks: '{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}'}
- {issuer: discovered}
`

func TestRequestAuthentication(t *testing.T) {
	testRules(t, istio.RequestAuthentication, requestAuthenticationBase, []ruleTest{
		{
			name: "neither issuer nor keys",
			spec: `jwtRules: [{}]`,
			violations: []string{
				"spec.jwtRules[0].issuer: is required",
			},
		},
		{
			name:       "any issuer",
			spec:       `jwtRules: [{jwksUri: "https://example.com"}]`,
			violations: []string{"spec.jwtRules[0].issuer: is required"},
		},
		{
			name: "keys",
			spec: `jwtRules: [{issuer: a, jwks: "{}", jwksUri: "ftp://a"}, {issuer: a, jwks: no}, {issuer: a, jwksUri: "https://"}, {issuer: a, jwksUri: "%"}]`,
			violations: []string{
				"spec.jwtRules[0].jwksUri: must not be set together with jwks",
				"spec.jwtRules[0].jwks: must be a JSON Web Key Set with at least one key",
				`spec.jwtRules[0].jwksUri: must be a URL of http or https, is "ftp://a"`,
				"spec.jwtRules[1].jwks: must be a JSON Web Key Set with at least one key",
				`spec.jwtRules[2].jwksUri: must be a URL of http or https, is "https://"`,
				`spec.jwtRules[3].jwksUri: must be a URL of http or https, is "%"`,
			},
		},
		{
			name: "places",
			spec: `
jwtRules:
- issuer: a
  audiences: [""]
  fromParams: [""]
  fromCookies: [""]
  spaceDelimitedClaims: [""]
  fromHeaders: [{}, {name: a b}]
  outputPayloadToHeader: a b
  outputClaimToHeaders: [{}, {header: a, claim: b}, {header: a, claim: c}]
  timeout: 0s`,
			violations: []string{
				"spec.jwtRules[0].audiences[0]: must not be empty",
				"spec.jwtRules[0].fromParams[0]: must not be empty",
				"spec.jwtRules[0].fromCookies[0]: must not be empty",
				"spec.jwtRules[0].fromHeaders[0].name: must not be empty",
				`spec.jwtRules[0].outputPayloadToHeader: must be a header name (letters, digits, '-' and '_'), is "a b"`,
				"spec.jwtRules[0].outputClaimToHeaders[0].header: is required",
				"spec.jwtRules[0].outputClaimToHeaders[0].claim: is required",
				`spec.jwtRules[0].outputClaimToHeaders[2].header: repeats outputClaimToHeaders[1].header: "a"`,
				"spec.jwtRules[0].timeout: must be at least 1ms, is 0s",
			},
			warnings: []string{
				"spec.jwtRules[0].spaceDelimitedClaims[0]: is empty, and no token has a claim of this name",
				`spec.jwtRules[0].fromHeaders[1].name: is "a b", which is not a header name`,
			},
		},
	})
}
