// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

const virtualServiceBase = `
hosts: [reviews.prod.svc.cluster.local, "*.example.com", 10.0.0.1]
gateways: [mesh, prod/gateway, ./other, short]
http:
- name: first
  match:
  - uri: {prefix: /a}
    scheme: {exact: https}
    method: {regex: "GET|HEAD"}
    authority: {prefix: reviews}
    headers: {x-a: {exact: b}, ":path": {prefix: /}, x-present: {}, "@request.auth.claims.sub": {exact: me}}
    withoutHeaders: {x-b: {}}
    queryParams: {debug: {exact: "1"}, present: {}}
    port: 80
    sourceLabels: {app: a}
    sourceNamespace: prod
    gateways: [mesh]
  route:
  - destination: {host: reviews, subset: v1, port: {number: 80}}
    weight: 90
    headers: {request: {set: {x-a: b}, add: {x-b: c}, remove: [x-c]}, response: {set: {x-d: e}}}
  - destination: {host: "*.example.com"}
    weight: 10
  rewrite: {uri: /b, authority: c}
  timeout: 1s
  retries: {attempts: 3, perTryTimeout: 2s, backoff: 0.025s, retryOn: "5xx, reset,503"}
  fault:
    delay: {fixedDelay: 5s, percentage: {value: 0.1}}
    abort: {httpStatus: 599, percentage: {value: 100}}
  mirrors: [{destination: {host: mirror}, percentage: {value: 50}}]
  corsPolicy:
    allowOrigins: [{exact: "https://example.com"}, {regex: ".*"}]
    allowMethods: [GET, POST]
    allowHeaders: [X-Foo, "*"]
    exposeHeaders: [X-Bar]
    maxAge: 86400s
    unmatchedPreflights: IGNORE
  headers: {request: {set: {Host: a}}}
- match: [{uri: {exact: /old}}]
  redirect: {uri: /new, authority: a, scheme: https, derivePort: FROM_REQUEST_PORT, redirectCode: 308}
- match: [{uri: {regex: "/r.*"}}]
  directResponse: {status: 503, body: {string: no}}
- match: [{uri: {prefix: /d}}]
  delegate: {name: d, namespace: other}
- route: [{destination: {host: rest}}]
tls:
- match:
  - {sniHosts: [a.example.com, "*.b.example.com"], destinationSubnets: [10.0.0.0/8], port: 443, sourceLabels: {app: a}}
  route: [{destination: {host: reviews}}]
tcp:
- match: [{port: 27017, destinationSubnets: [10.0.0.1], sourceSubnet: 10.0.0.0/8, gateways: [mesh]}]
  route: [{destination: {host: mongo}, weight: 1}, {destination: {host: mongo2}}]
exportTo: ["*"]
`

const oneRouteBase = `{hosts: [a.example.com], http: [{route: [{destination: {host: b}}]}]}`

func TestVirtualService(t *testing.T) {
	testRules(t, istio.VirtualService, virtualServiceBase, []ruleTest{
		{name: "delegate", spec: `{hosts: [], gateways: [], tls: [], tcp: [], http: [{route: [{destination: {host: a}}]}]}`},
		{
			name: "delegate with more",
			spec: `{hosts: [], http: [{delegate: {name: a}}]}`,
			violations: []string{
				"spec.gateways: must be empty in a delegate, which has no hosts",
				"spec.tls: must be empty in a delegate, which has no hosts",
				"spec.tcp: must be empty in a delegate, which has no hosts",
				"spec.http[0].delegate: must not be set in a delegate: there is one level only",
				`spec.tls[0].match[0].sniHosts[0]: must be one of spec.hosts or included by one, is "a.example.com"`,
				`spec.tls[0].match[0].sniHosts[1]: must be one of spec.hosts or included by one, is "*.b.example.com"`,
			},
		},
		{
			name:       "no routes",
			spec:       `{http: [], tls: [], tcp: []}`,
			violations: []string{"spec: must have one of http, tls, tcp"},
		},
		{name: "everything at a gateway", spec: `{hosts: ["*"], gateways: [g]}`},
		{
			name:       "everything in the mesh",
			spec:       `{hosts: ["*"], gateways: []}`,
			violations: []string{"spec.hosts[0]: must not be * for the gateway mesh"},
		},
		{
			name: "hosts",
			spec: `{hosts: [a_b, "*.example.com", a.example.com, a.example.com, "*.b.example.com", example.com, "*.com"]}`,
			violations: []string{
				`spec.hosts[0]: must be a domain name, is "a_b": "a_b" is no DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.hosts[1]: is "*.example.com", which "*.com" includes`,
				`spec.hosts[2]: is "a.example.com", which "*.example.com" includes`,
				`spec.hosts[3]: repeats spec.hosts[2]: "a.example.com"`,
				`spec.hosts[4]: is "*.b.example.com", which "*.example.com" includes`,
				`spec.hosts[5]: is "example.com", which "*.com" includes`,
			},
		},
		{
			name: "exported to nobody",
			spec: `exportTo: ["~", ns]`,
			violations: []string{
				"spec.exportTo[0]: must not be ~ for a VirtualService",
			},
		},
	})
}

// TestLegacyGatewayNameHidesLaterOnes is about a weakness of Istio 1.30, which
// stops at the first name in the old form.
func TestLegacyGatewayNameHidesLaterOnes(t *testing.T) {
	testRules(t, istio.VirtualService, oneRouteBase, []ruleTest{{
		name: "names",
		spec: `gateways: [mesh, g.ns.svc.cluster.local, "", a/b/c, Ns_/g, ns/, /g, a_b, ns/g.h]`,
		violations: []string{
			"spec.gateways[2]: must not be empty",
			`spec.gateways[3]: must have a DNS label after the slash (letters, digits and inner dashes, at most 63 characters), is "a/b/c"`,
			`spec.gateways[4]: must have . or a namespace before the slash, is "Ns_/g"`,
			`spec.gateways[5]: must have a DNS label after the slash (letters, digits and inner dashes, at most 63 characters), is "ns/"`,
			`spec.gateways[6]: must have . or a namespace before the slash, is "/g"`,
			`spec.gateways[7]: must be a gateway's name or namespace/name, is "a_b"`,
			`spec.gateways[8]: must have a DNS label after the slash (letters, digits and inner dashes, at most 63 characters), is "ns/g.h"`,
		},
		warnings: []string{`spec.gateways[1]: is "g.ns.svc.cluster.local"; the form namespace/name replaces domain names`},
	}})
}

func TestHTTPRouteActions(t *testing.T) {
	testRules(t, istio.VirtualService, oneRouteBase, []ruleTest{
		{
			name:       "none",
			spec:       `http: [{}]`,
			violations: []string{"spec.http[0]: must have exactly one of route, redirect, directResponse, delegate, has 0"},
		},
		{
			name: "two",
			spec: `http: [{route: [{destination: {host: b}}], redirect: {uri: /}, rewrite: {uri: /}}]`,
			violations: []string{
				"spec.http[0]: must have exactly one of route, redirect, directResponse, delegate, has 2",
				"spec.http[0].rewrite: must not be set beside redirect",
			},
		},
		{
			name:       "root with its own route",
			spec:       `http: [{route: [{destination: {host: b}}], delegate: {name: a}}]`,
			violations: []string{"spec.http[0]: must have exactly one of route, redirect, directResponse, delegate, has 2"},
		},
		{
			name: "delegates",
			spec: `http: [{match: [{uri: {prefix: /a}}], delegate: {}}, {match: [{uri: {prefix: /b}}], delegate: {name: a_b, namespace: c.d}}]`,
			violations: []string{
				"spec.http[0].delegate.name: is required",
				`spec.http[1].delegate.name: must be an object's name (DNS labels with dots), is "a_b"`,
				`spec.http[1].delegate.namespace: must be a DNS label (letters, digits and inner dashes, at most 63 characters), is "c.d"`,
			},
		},
		{
			name: "destinations",
			spec: `
http:
- route:
  - {weight: -1}
  - {destination: {host: "*"}}
  - {destination: {host: a_b, subset: c_d, port: {}}}
  - {destination: {}, weight: 1}`,
			violations: []string{
				"spec.http[0].route[0].destination: is required",
				"spec.http[0].route[0].weight: must not be negative, is -1",
				"spec.http[0].route[1].destination.host: must not be *",
				`spec.http[0].route[2].destination.host: must be a domain name, is "a_b": "a_b" is no DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.http[0].route[2].destination.subset: must be a DNS label (letters, digits and inner dashes, at most 63 characters), is "c_d"`,
				"spec.http[0].route[2].destination.port.number: must be 1–65535, is 0",
				"spec.http[0].route[3].destination.host: is required",
				"spec.http[0].route: must have a destination with a weight above 0",
			},
		},
		{
			name:       "no weights",
			spec:       `http: [{route: [{destination: {host: a}}, {destination: {host: b}}]}]`,
			violations: []string{"spec.http[0].route: must have a destination with a weight above 0"},
		},
		{
			name:       "weights beyond Envoy's",
			spec:       `http: [{route: [{destination: {host: a}, weight: 2147483647}, {destination: {host: b}, weight: 2147483647}, {destination: {host: c}, weight: 2}]}]`,
			violations: []string{"spec.http[0].route: must have weights that add up to at most 4294967295, add up to 4294967296"},
		},
		{
			name: "empty redirect and rewrite",
			spec: `http: [{redirect: {}}]`,
			violations: []string{
				"spec.http[0].redirect: must have one of uri, authority, port, derivePort, scheme, redirectCode, prefixRewrite",
			},
		},
		{
			name: "redirect",
			spec: `http: [{redirect: {uri: /a, prefixRewrite: /b, port: 0, scheme: ftp, redirectCode: 304}}]`,
			violations: []string{
				"spec.http[0].redirect.prefixRewrite: must not be set beside uri",
				"spec.http[0].redirect.port: must be 1–65535, is 0",
				`spec.http[0].redirect.scheme: must be http or https, is "ftp"`,
				"spec.http[0].redirect.redirectCode: must be 301, 302, 303, 307 or 308, is 304",
			},
		},
		{
			name:       "redirect to a port of an unknown kind",
			spec:       `http: [{redirect: {derivePort: 9}}]`,
			violations: []string{"spec.http[0].redirect.derivePort: must be one of FROM_PROTOCOL_DEFAULT, FROM_REQUEST_PORT, is 9"},
		},
		{
			name:       "empty rewrite",
			spec:       `http: [{route: [{destination: {host: b}}], rewrite: {}}]`,
			violations: []string{"spec.http[0].rewrite: must have one of uri, uriRegexRewrite, authority"},
		},
		{
			name: "rewrite",
			spec: `http: [{route: [{destination: {host: b}}], rewrite: {uri: /a, uriRegexRewrite: {match: "("}}}]`,
			violations: []string{
				"spec.http[0].rewrite.uriRegexRewrite.match: must be a regular expression: error parsing regexp: missing closing ): `(`",
				"spec.http[0].rewrite.uriRegexRewrite.rewrite: is required",
				"spec.http[0].rewrite.uriRegexRewrite: must not be set beside uri",
			},
		},
		{
			name:     "rewrite of an answer",
			spec:     `http: [{directResponse: {status: 200}, rewrite: {uri: /}}]`,
			warnings: []string{"spec.http[0].rewrite: has no effect beside directResponse"},
		},
		{
			name:       "empty body",
			spec:       `http: [{directResponse: {status: 200, body: {}}}]`,
			violations: []string{"spec.http[0].directResponse.body: must have one of string, bytes"},
		},
		{name: "body at the limit of silence", spec: `http: [{directResponse: {status: 200, body: {string: ` + strings.Repeat("a", 100<<10) + `}}}]`},
		{
			name:     "large body",
			spec:     `http: [{directResponse: {status: 200, body: {string: ` + strings.Repeat("a", 100<<10+1) + `}}}]`,
			warnings: []string{"spec.http[0].directResponse.body.string: has 102401 bytes, which every proxy's configuration carries"},
		},
		{
			name:       "too large body",
			spec:       `http: [{directResponse: {status: 200, body: {bytes: ` + strings.Repeat("aaaa", (1<<20)/3+1) + `}}}]`,
			violations: []string{"spec.http[0].directResponse.body.bytes: must have at most 1048576 bytes, has 1048578"},
		},
	})
}

// TestStatus600 is about a weakness of Istio 1.30, which lets 600 pass.
func TestStatus600(t *testing.T) {
	testRules(t, istio.VirtualService, oneRouteBase, []ruleTest{
		{name: "answer 200", spec: `http: [{directResponse: {status: 200}}]`},
		{name: "answer 599", spec: `http: [{directResponse: {status: 599}}]`},
		{name: "answer 600", spec: `http: [{directResponse: {status: 600}}]`, violations: []string{"spec.http[0].directResponse.status: must be 200–599, is 600"}},
		{name: "answer 199", spec: `http: [{directResponse: {status: 199}}]`, violations: []string{"spec.http[0].directResponse.status: must be 200–599, is 199"}},
		{
			name:       "abort with 600",
			spec:       `http: [{route: [{destination: {host: b}}], fault: {abort: {httpStatus: 600}}}]`,
			violations: []string{"spec.http[0].fault.abort.httpStatus: must be 200–599, is 600"},
		},
	})
}

func TestHTTPMatch(t *testing.T) {
	testRules(t, istio.VirtualService, oneRouteBase, []ruleTest{
		{
			name: "strings",
			spec: `
http:
- match:
  - uri: {prefix: ""}
    scheme: {exact: ""}
    method: {}
    authority: {regex: ""}
    headers: {"": {}, "a b": {}, x: {regex: "["}, "::a": {}}
    withoutHeaders: {"é": {}}
    queryParams: {"": {exact: a}, a: {regex: "("}}
    port: 65536
    sourceLabels: {"": a}
    sourceNamespace: a.b
    gateways: [""]
  - uri: {regex: ` + strings.Repeat("a", 1025) + `}
  - uri: {regex: ` + strings.Repeat("a", 1024) + `}
  route: [{destination: {host: b}}]`,
			violations: []string{
				"spec.http[0].match[0].uri.prefix: must not be empty",
				"spec.http[0].match[0].scheme.exact: must not be empty",
				"spec.http[0].match[0].method: must have one of exact, prefix, regex",
				"spec.http[0].match[0].authority.regex: must not be empty",
				"spec.http[0].match[0].headers[::a]: key must be a header name",
				"spec.http[0].match[0].headers[]: key must not be empty",
				"spec.http[0].match[0].headers[a b]: key must be a header name",
				"spec.http[0].match[0].headers[x].regex: must be a regular expression: error parsing regexp: missing closing ]: `[`",
				"spec.http[0].match[0].withoutHeaders[é]: key must be a header name",
				"spec.http[0].match[0].queryParams[]: key must not be empty",
				"spec.http[0].match[0].queryParams[a].regex: must be a regular expression: error parsing regexp: missing closing ): `(`",
				"spec.http[0].match[0].port: must be 0 (unset) or 1–65535, is 65536",
				"spec.http[0].match[0].sourceLabels[]: key must not be empty",
				"spec.http[0].match[0].gateways[0]: must not be empty",
				`spec.http[0].match[0].sourceNamespace: must be a DNS label (letters, digits and inner dashes, at most 63 characters), is "a.b"`,
				"spec.http[0].match[1].uri.regex: must have at most 1024 characters, has 1025",
			},
		},
	})
}

func TestHTTPRouteSettings(t *testing.T) {
	testRules(t, istio.VirtualService, oneRouteBase, []ruleTest{
		{
			name: "headers",
			spec: `http: [{route: [{destination: {host: b}, headers: {request: {set: {"": a}}}}], headers: {request: {add: {"a:b": c}}, response: {set: {a: "b\nc"}, remove: ["", a b]}}}]`,
			violations: []string{
				"spec.http[0].route[0].headers.request.set[]: key must not be empty",
				"spec.http[0].headers.request.add[a:b]: key must be a header name",
				`spec.http[0].headers.response.set[a]: must not hold line breaks, is "b\nc"`,
				`spec.http[0].headers.response.remove[0]: must not be empty, is ""`,
				`spec.http[0].headers.response.remove[1]: must be a header name, is "a b"`,
			},
		},
		{
			name: "timeout and retries",
			spec: `http: [{route: [{destination: {host: b}}], timeout: 0.0001s, retries: {attempts: -1, perTryTimeout: 0s, backoff: 0s, retryOn: "5xx,,bogus,603"}}]`,
			violations: []string{
				"spec.http[0].timeout: must be at least 1ms, is 100µs",
				"spec.http[0].retries.attempts: must not be negative, is -1",
				"spec.http[0].retries.perTryTimeout: must be at least 1ms, is 0s",
				"spec.http[0].retries.backoff: must be at least 1ms, is 0s",
				`spec.http[0].retries.retryOn: must list retry conditions of Envoy or HTTP statuses, has ""`,
				`spec.http[0].retries.retryOn: must list retry conditions of Envoy or HTTP statuses, has "bogus"`,
				`spec.http[0].retries.retryOn: must list retry conditions of Envoy or HTTP statuses, has "603"`,
			},
		},
		{name: "retries off", spec: `http: [{route: [{destination: {host: b}}], retries: {attempts: 0}}]`},
		{
			name:       "retries off, with settings",
			spec:       `http: [{route: [{destination: {host: b}}], retries: {retryOn: 5xx}}]`,
			violations: []string{"spec.http[0].retries.attempts: must be above 0 beside other settings, as 0 turns retries off"},
		},
		{
			name:       "empty fault",
			spec:       `http: [{route: [{destination: {host: b}}], fault: {}}]`,
			violations: []string{"spec.http[0].fault: must have one of delay, abort"},
		},
		{
			name: "faults",
			spec: `http: [{route: [{destination: {host: b}}], fault: {delay: {percent: 101, percentage: {value: -1}}, abort: {percentage: {value: NaN}}}}]`,
			violations: []string{
				"spec.http[0].fault.delay.percent: must be 0–100, is 101",
				"spec.http[0].fault.delay.percentage.value: must be 0–100, is -1",
				"spec.http[0].fault.delay.fixedDelay: is required",
				"spec.http[0].fault.abort.percentage.value: must be 0–100, is NaN",
				"spec.http[0].fault.abort: must have one of httpStatus, grpcStatus",
			},
			warnings: []string{"spec.http[0].fault.delay.percent: is deprecated; use percentage"},
		},
		{
			name: "unsupported faults",
			spec: `http: [{route: [{destination: {host: b}}], fault: {delay: {exponentialDelay: 1s}, abort: {http2Error: x}}}]`,
			violations: []string{
				"spec.http[0].fault.delay.exponentialDelay: is not supported; use fixedDelay",
				"spec.http[0].fault.abort.http2Error: is not supported; use httpStatus or grpcStatus",
			},
		},
		{
			name:       "gRPC status by number",
			spec:       `http: [{route: [{destination: {host: b}}], fault: {abort: {grpcStatus: "14"}}}]`,
			violations: []string{`spec.http[0].fault.abort.grpcStatus: must be the name of a gRPC status, such as UNAVAILABLE, is "14"`},
		},
		{name: "gRPC status", spec: `http: [{route: [{destination: {host: b}}], fault: {abort: {grpcStatus: UNAVAILABLE}}}]`},
		{
			name: "mirrors",
			spec: `http: [{route: [{destination: {host: b}}], mirror: {host: "*"}, mirrors: [{percentage: {value: 101}}], mirrorPercent: 101, mirrorPercentage: {value: 101}}]`,
			violations: []string{
				"spec.http[0].mirror.host: must not be *",
				"spec.http[0].mirrors: must not be set beside mirror",
				"spec.http[0].mirrors[0].destination: is required",
				"spec.http[0].mirrors[0].percentage.value: must be 0–100, is 101",
				"spec.http[0].mirrorPercent: must be 0–100, is 101",
				"spec.http[0].mirrorPercentage.value: must be 0–100, is 101",
			},
			warnings: []string{"spec.http[0].mirrorPercent: is deprecated; use mirrorPercentage"},
		},
		{
			name: "CORS",
			spec: `http: [{route: [{destination: {host: b}}], corsPolicy: {allowOrigin: [a], allowOrigins: [{}, {exact: ""}], allowMethods: ["", get], allowHeaders: [""], exposeHeaders: [a b], maxAge: 0.5s, unmatchedPreflights: 9}}]`,
			violations: []string{
				"spec.http[0].corsPolicy.allowOrigins[0]: must have one of exact, prefix, regex",
				"spec.http[0].corsPolicy.allowOrigins[1].exact: must not be empty",
				`spec.http[0].corsPolicy.allowMethods[0]: must be an HTTP method, is ""`,
				`spec.http[0].corsPolicy.allowHeaders[0]: must not be empty, is ""`,
				`spec.http[0].corsPolicy.exposeHeaders[0]: must be a header name, is "a b"`,
				"spec.http[0].corsPolicy.maxAge: must be whole seconds, is 500ms",
				"spec.http[0].corsPolicy.unmatchedPreflights: must be one of UNSPECIFIED, FORWARD, IGNORE, is 9",
			},
			warnings: []string{
				"spec.http[0].corsPolicy.allowOrigin: is deprecated; use allowOrigins",
				`spec.http[0].corsPolicy.allowMethods[1]: is no method of HTTP: "get"`,
			},
		},
	})
}

func TestL4Routes(t *testing.T) {
	testRules(t, istio.VirtualService, virtualServiceBase, []ruleTest{
		{
			name: "TLS",
			spec: `tls: [{}, {match: [{}, {sniHosts: [example.com, "*.example.com", "*", "reviews.prod.svc.cluster.local", a_b], destinationSubnets: [a], port: 65536, gateways: [a_b]}], route: [{}]}]`,
			violations: []string{
				"spec.tls[0].match: must have at least one match",
				"spec.tls[0].route: must have at least one destination",
				"spec.tls[1].match[0].sniHosts: must have at least one host",
				`spec.tls[1].match[1].sniHosts[0]: must be one of spec.hosts or included by one, is "example.com"`,
				`spec.tls[1].match[1].sniHosts[2]: must be one of spec.hosts or included by one, is "*"`,
				`spec.tls[1].match[1].sniHosts[4]: must be a domain name, is "a_b": "a_b" is no DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.tls[1].match[1].sniHosts[4]: must be one of spec.hosts or included by one, is "a_b"`,
				`spec.tls[1].match[1].destinationSubnets[0]: must be an IP address or a CIDR block, is "a"`,
				"spec.tls[1].match[1].port: must be 0 (unset) or 1–65535, is 65536",
				`spec.tls[1].match[1].gateways[0]: must be a gateway's name or namespace/name, is "a_b"`,
				"spec.tls[1].route[0].destination: is required",
			},
		},
		{
			name: "TCP",
			spec: `tcp: [{}, {match: [{destinationSubnets: [""], sourceSubnet: x, sourceLabels: {a b: c}}], route: [{destination: {host: a}}, {destination: {host: b}}]}]`,
			violations: []string{
				"spec.tcp[0].route: must have at least one destination",
				`spec.tcp[1].match[0].destinationSubnets[0]: must be an IP address or a CIDR block, is ""`,
				`spec.tcp[1].match[0].sourceSubnet: must be an IP address or a CIDR block, is "x"`,
				"spec.tcp[1].match[0].sourceLabels[a b]: key must end in a name (letters, digits, and inside also '-', '_' and '.', at most 63 characters)",
				"spec.tcp[1].route: must have a destination with a weight above 0",
			},
		},
	})
}

func TestReachability(t *testing.T) {
	const to = `route: [{destination: {host: b}}]`
	testRules(t, istio.VirtualService, oneRouteBase, []ruleTest{
		{
			name:     "after a route for everything",
			spec:     `http: [{` + to + `}, {match: [{uri: {exact: /a}}], ` + to + `}]`,
			warnings: []string{"spec.http[1]: is never reached: spec.http[0] takes every request"},
		},
		{
			name:     "after the prefix of everything",
			spec:     `http: [{match: [{uri: {exact: /a}}, {uri: {prefix: /}}], ` + to + `}, {` + to + `}]`,
			warnings: []string{"spec.http[1]: is never reached: spec.http[0] takes every request"},
		},
		{
			name:     "after an empty match",
			spec:     `http: [{match: [{name: all}], ` + to + `}, {` + to + `}]`,
			warnings: []string{"spec.http[1]: is never reached: spec.http[0] takes every request"},
		},
		{
			name: "repeated",
			spec: `http: [{match: [{name: x, uri: {exact: /a}, headers: {a: {exact: "1"}, b: {}}}], ` + to + `}, {match: [{uri: {exact: /b}}, {headers: {b: {}, a: {exact: "1"}}, uri: {exact: /a}}], ` + to + `}]`,
			warnings: []string{
				"spec.http[1].match[1]: is never reached: it repeats spec.http[0].match[0]",
			},
		},
		{
			name: "after a prefix",
			spec: `http: [{match: [{uri: {prefix: /a}}], ` + to + `}, {match: [{uri: {prefix: /a/b}, port: 80}, {uri: {exact: /abc}}, {uri: {exact: /b}}], ` + to + `}]`,
			warnings: []string{
				`spec.http[1].match[0]: is never reached: spec.http[0].match[0] takes every path with the prefix "/a"`,
				`spec.http[1].match[1]: is never reached: spec.http[0].match[0] takes every path with the prefix "/a"`,
			},
		},
		{name: "after a prefix with more conditions", spec: `http: [{match: [{uri: {prefix: /a}, port: 80}], ` + to + `}, {match: [{uri: {exact: /a}}], ` + to + `}]`},
		{name: "after a prefix in any letter case", spec: `http: [{match: [{uri: {prefix: /a}, ignoreUriCase: true}], ` + to + `}, {match: [{uri: {exact: /ab}}], ` + to + `}]`},
		{name: "after a delegate", spec: `http: [{match: [{uri: {prefix: /}}], delegate: {name: d}}, {` + to + `}]`},
	})
}
