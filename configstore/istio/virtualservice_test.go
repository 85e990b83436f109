// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

const virtualServiceBase = `
hosts: [reviews.prod.svc.cluster.local, "*.example.com", 10.0.0.1]
gateways: [mesh, prod/gateway, short]
http:
- name: first
  match:
  - uri: {prefix: /a}
    scheme: {exact: https}
    method: {regex: "GET|HEAD"}
    authority: {prefix: reviews}
    headers: {x-a: {exact: b}, ":path": {prefix: /}, x-present: {}}
    withoutHeaders: {x-b: {}}
    queryParams: {debug: {exact: "1"}, present: {}}
    port: 80
    sourceLabels: {app: a}
    sourceNamespace: prod
    gateways: [mesh]
  - {uri: {prefix: /a}, method: {exact: OPTIONS}}
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
  headers: {request: {set: {X-A: a}}}
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
				`spec.hosts[0]: must be a domain name, is "a_b": "a_b" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
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
			`spec.gateways[4]: must have a namespace before the slash, is "Ns_/g"`,
			`spec.gateways[5]: must have a name after the slash, is "ns/"`,
			`spec.gateways[6]: must have a namespace before the slash, is "/g"`,
			`spec.gateways[7]: must be a gateway's name or namespace/name, is "a_b"`,
			`spec.gateways[8]: must have a DNS label after the slash (letters, digits and inner dashes, at most 63 characters), is "ns/g.h"`,
		},
		warnings: []string{
			`spec.gateways[1]: is "g.ns.svc.cluster.local"; the form namespace/name replaces domain names`,
		},
	}})
}
