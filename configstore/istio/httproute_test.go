// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

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
				"spec.http[0].rewrite: must not be set together with redirect, which forwards nothing",
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
			warnings: []string{
				`spec.http[0].delegate: is "" in namespace "", which no VirtualService can be: the route is left out`,
				`spec.http[1].delegate: is "a_b" in namespace "c.d", which no VirtualService can be: the route is left out`,
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
				`spec.http[0].route[2].destination.host: must be a domain name, is "a_b": "a_b" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
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
			spec: `http: [{redirect: {redirectCode: 302}}]`, // leads back to itself
			violations: []string{
				"spec.http[0].redirect: must have one of uri, authority, port, derivePort, scheme, prefixRewrite",
			},
		},
		{
			name: "redirect",
			spec: `http: [{redirect: {uri: /a, prefixRewrite: /b, port: 0, scheme: ftp, redirectCode: 304}}]`,
			violations: []string{
				"spec.http[0].redirect.prefixRewrite: must not be set together with uri",
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
				"spec.http[0].rewrite.uriRegexRewrite: must not be set together with uri",
			},
		},
		{
			name: "rewrite of an answer",
			spec: `http: [{directResponse: {status: 200}, rewrite: {uri: /}}]`,
			violations: []string{
				"spec.http[0].rewrite: must not be set together with directResponse, which forwards nothing",
			},
		},
		{
			name: "empty body",
			spec: `http: [{directResponse: {status: 200, body: {}}}]`,
			warnings: []string{
				"spec.http[0].directResponse.body: is empty without string or bytes",
			},
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
				"spec.http[0].match[0].authority.regex: must not be empty",
				"spec.http[0].match[0].headers[]: key must not be empty",
				"spec.http[0].match[0].headers[::a]: key must be a header name",
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
			warnings: []string{
				"spec.http[0].match[0].scheme.exact: is empty: no request matches",
				"spec.http[0].match[0].method: has none of exact, prefix, regex: every request matches",
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
				`spec.http[0].headers.response.set[a]: must not hold control characters, is "b\nc"`,
				"spec.http[0].route[0].headers.request.set[]: key must not be empty",
				"spec.http[0].headers.request.add[a:b]: key must be a header name",
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
			violations: []string{"spec.http[0].retries.attempts: must be above 0 together with other settings, as 0 turns retries off"},
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
				"spec.http[0].fault.abort.percentage.value: must be 0–100, is NaN",
			},
			warnings: []string{
				"spec.http[0].fault.delay.percent: is deprecated; use percentage",
				"spec.http[0].fault.delay: has no effect without fixedDelay",
				"spec.http[0].fault.abort: has no effect without httpStatus or grpcStatus",
			},
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
				"spec.http[0].mirrors: must not be set together with mirror",
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
				`spec.http[0].corsPolicy.allowMethods[0]: must be * or a method of HTTP, in upper case, is ""`,
				`spec.http[0].corsPolicy.allowMethods[1]: must be * or a method of HTTP, in upper case, is "get"`,
				`spec.http[0].corsPolicy.allowHeaders[0]: must not be empty, is ""`,
				`spec.http[0].corsPolicy.exposeHeaders[0]: must be a header name, is "a b"`,
				"spec.http[0].corsPolicy.maxAge: must be whole seconds, at least 1s, is 500ms",
				"spec.http[0].corsPolicy.unmatchedPreflights: must be one of UNSPECIFIED, FORWARD, IGNORE, is 9",
			},
			warnings: []string{
				"spec.http[0].corsPolicy.allowOrigin: is deprecated; use allowOrigins",
			},
		},
		{
			name: "CORS that no preflight reaches",
			spec: `http:
- {match: [{uri: {prefix: /a}, method: {exact: GET}}, {uri: {prefix: /b}, headers: {X-Tenant: {exact: a}}}, {uri: {prefix: /c}, headers: {Origin: {exact: a}}}, {uri: {prefix: /d}, method: {regex: "GET|OPTIONS"}}], route: [{destination: {host: b}}], corsPolicy: {}}
- {match: [{uri: {prefix: /e}, method: {exact: GET}}], route: [{destination: {host: b}}]}`,
			warnings: []string{
				"spec.http[0].match[0]: takes no preflights for corsPolicy, which have the method OPTIONS and none of the headers of the request: add a route with the policy for them",
				"spec.http[0].match[1]: takes no preflights for corsPolicy, which have the method OPTIONS and none of the headers of the request: add a route with the policy for them",
			},
		},
		{
			name: "CORS whose preflights have a route of their own",
			spec: `http:
- {match: [{uri: {prefix: /a}, method: {exact: GET}}], route: [{destination: {host: b}}], corsPolicy: {}}
- {match: [{uri: {prefix: /a}, method: {exact: OPTIONS}}], route: [{destination: {host: b}}], corsPolicy: {}}`,
		},
		{name: "CORS of all routes", spec: `http: [{match: [{method: {exact: GET}}], route: [{destination: {host: b}}], corsPolicy: {}}, {route: [{destination: {host: b}}], corsPolicy: {}}]`},
	})
}
