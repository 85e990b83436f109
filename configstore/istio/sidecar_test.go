// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

const sidecarBase = `
workloadSelector: {labels: {app: a}}
ingress:
- port: {number: 9080, protocol: HTTP, name: http}
  bind: 10.0.0.1
  captureMode: NONE
  defaultEndpoint: 127.0.0.1:8080
  connectionPool: {http: {http1MaxPendingRequests: 1}}
- port: {number: 9443, protocol: HTTPS, name: https}
  defaultEndpoint: unix:///var/run/socket
  tls: {mode: SIMPLE, serverCertificate: a, privateKey: b}
egress:
- port: {number: 9080, protocol: HTTP, name: http}
  bind: 127.0.0.1
  hosts: ["prod/*.example.com", "*/a.example.com", ./b.example.com]
- port: {number: 0, protocol: HTTP, name: socket}
  bind: unix:///var/run/other
  captureMode: NONE
  hosts: ["istio-system/*", ~/*, ~prod/c.example.com]
- hosts: ["*/*"]
outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: egress.example.com, port: {number: 80}}}
inboundConnectionPool: {tcp: {maxConnections: 1}}
`

func TestSidecar(t *testing.T) {
	testRules(t, istio.Sidecar, sidecarBase, []ruleTest{
		{
			name:     "empty selector",
			spec:     `workloadSelector: {}`,
			warnings: []string{"spec.workloadSelector.labels: is empty: will be applied to all workloads in the namespace"},
		},
		{
			name:       "nothing in it",
			spec:       `{ingress: [], egress: [], outboundTrafficPolicy: null, inboundConnectionPool: null}`,
			violations: []string{"spec: must have one of ingress, egress, outboundTrafficPolicy, inboundConnectionPool"},
		},
		{name: "direct outbound traffic", spec: `outboundTrafficPolicy: {mode: ALLOW_ANY}`},
		{name: "a pool alone", spec: `{ingress: [], egress: [], outboundTrafficPolicy: null}`},
		{
			name:       "bad pool",
			spec:       `inboundConnectionPool: {tcp: {maxConnections: -1}}`,
			violations: []string{"spec.inboundConnectionPool.tcp.maxConnections: must not be negative, is -1"},
		},
		{
			name: "egress proxy",
			spec: `outboundTrafficPolicy: {mode: REGISTRY_ONLY, egressProxy: {host: "*.example.com"}}`,
			violations: []string{
				"spec.outboundTrafficPolicy.egressProxy: must not be set for mode REGISTRY_ONLY, only for ALLOW_ANY",
				`spec.outboundTrafficPolicy.egressProxy.host: must not be a wildcard, is "*.example.com"`,
				"spec.outboundTrafficPolicy.egressProxy.port: is required",
			},
		},
		{
			name: "outbound mode and port",
			spec: `outboundTrafficPolicy: {mode: 9, egressProxy: {host: a.com, port: {number: 65536}}}`,
			violations: []string{
				"spec.outboundTrafficPolicy.mode: must be one of REGISTRY_ONLY, ALLOW_ANY, is 9",
				"spec.outboundTrafficPolicy.egressProxy: must not be set for mode 9, only for ALLOW_ANY",
				"spec.outboundTrafficPolicy.egressProxy.port.number: must be 1–65535, is 65536",
			},
		},
	})
}

func TestSidecarIngress(t *testing.T) {
	testRules(t, istio.Sidecar, sidecarBase, []ruleTest{
		{
			name: "listeners",
			spec: `
ingress:
- {}
- {port: {number: 65536, protocol: NOPE, targetPort: 1}, bind: a, captureMode: 9, defaultEndpoint: a}
- {port: {number: 80, protocol: TCP}, bind: "unix:///a", connectionPool: {http: {}}}
- {port: {number: 80, protocol: HTTP}}`,
			violations: []string{
				"spec.ingress[0].port: is required",
				"spec.ingress[1].port.number: must be 1–65535, is 65536",
				`spec.ingress[1].port.protocol: must be empty or one of TCP, UDP, GRPC, GRPC-Web, HTTP, HTTP_PROXY, HTTP2, HTTPS, TLS, Mongo, Redis, MySQL, is "NOPE"`,
				"spec.ingress[1].port.targetPort: must not be set, is 1",
				`spec.ingress[1].bind: must be an IP address, is "a"`,
				"spec.ingress[1].captureMode: must be one of DEFAULT, IPTABLES, NONE, is 9",
				`spec.ingress[1].defaultEndpoint: must be host:port or unix://path, is "a"`,
				`spec.ingress[2].bind: must be an IP address, is "unix:///a"`,
				"spec.ingress[3].port.number: repeats spec.ingress[2].port.number: 80",
			},
			warnings: []string{`spec.ingress[2].connectionPool.http: has no effect for protocol "TCP"`},
		},
		{
			name: "default endpoints",
			spec: `
ingress:
- {port: {number: 1}, defaultEndpoint: "0.0.0.0:1"}
- {port: {number: 2}, defaultEndpoint: "[::1]:65535"}
- {port: {number: 3}, defaultEndpoint: "[::]:1"}
- {port: {number: 4}, defaultEndpoint: ":1"}
- {port: {number: 5}, defaultEndpoint: "unix://@a"}
- {port: {number: 6}, defaultEndpoint: "10.0.0.1:1"}
- {port: {number: 7}, defaultEndpoint: "127.0.0.1:0"}
- {port: {number: 8}, defaultEndpoint: "127.0.0.1:http"}
- {port: {number: 9}, defaultEndpoint: "unix://a"}`,
			violations: []string{
				`spec.ingress[5].defaultEndpoint: must have 127.0.0.1, 0.0.0.0, [::1], [::] or nothing before the port, is "10.0.0.1:1"`,
				`spec.ingress[6].defaultEndpoint: must have a port of 1–65535, is "127.0.0.1:0"`,
				`spec.ingress[7].defaultEndpoint: must have a port of 1–65535, is "127.0.0.1:http"`,
				`spec.ingress[8].defaultEndpoint: must be an absolute unix domain socket path or @name, is "a"`,
			},
		},
		{
			name: "TLS",
			spec: `
ingress:
- {port: {number: 1, protocol: HTTP}, tls: {mode: SIMPLE, serverCertificate: a, privateKey: b}}
- {port: {number: 2, protocol: TLS}, tls: {mode: MUTUAL, credentialName: a, caCertCredentialName: b, subjectAltNames: [a], httpsRedirect: true}}
- {port: {number: 3, protocol: TLS}, tls: {mode: SIMPLE, credentialNames: [a]}}
- {port: {number: 4, protocol: TLS}, tls: {mode: ISTIO_MUTUAL}}
- {port: {number: 5, protocol: TLS}, tls: {mode: AUTO_PASSTHROUGH}}`,
			violations: []string{
				`spec.ingress[0].tls: must not be set for protocol "HTTP", only for HTTPS and TLS`,
				"spec.ingress[1].tls.subjectAltNames: must be empty in a Sidecar",
				"spec.ingress[1].tls.httpsRedirect: must not be set in a Sidecar",
				"spec.ingress[1].tls.credentialName: must not be set in a Sidecar, which reads certificates from files",
				"spec.ingress[1].tls.caCertCredentialName: must not be set in a Sidecar, which reads certificates from files",
				"spec.ingress[2].tls.credentialNames: must not be set in a Sidecar, which reads certificates from files",
				"spec.ingress[3].tls.mode: must not be ISTIO_MUTUAL in a Sidecar",
				"spec.ingress[4].tls.mode: must not be AUTO_PASSTHROUGH in a Sidecar",
			},
		},
	})
}

func TestSidecarEgress(t *testing.T) {
	testRules(t, istio.Sidecar, sidecarBase, []ruleTest{
		{
			name: "ports and binds",
			spec: `
egress:
- {hosts: [./*]}
- {port: {number: 0, protocol: HTTP}, hosts: [./*]}
- {port: {number: 0, protocol: HTTP}, bind: "unix:///a", captureMode: IPTABLES, hosts: [./*]}
- {port: {number: 0, protocol: HTTP}, bind: "unix:///a", captureMode: DEFAULT, hosts: [./*]}
- {port: {number: 80, protocol: HTTP}, bind: "unix:///b", hosts: [./*]}
- {port: {number: 80, protocol: NOPE, targetPort: 1}, bind: "::1", hosts: [./*]}
- {port: {number: 65536}, captureMode: 9, hosts: [./*]}
- {bind: 10.0.0.1, hosts: [./*]}`,
			violations: []string{
				"spec.egress[0].port: is required for all listeners but the last",
				`spec.egress[1].bind: must be a unix domain socket for port 0, is ""`,
				"spec.egress[2].captureMode: must be DEFAULT or NONE for a unix domain socket, is IPTABLES",
				`spec.egress[3].bind: repeats spec.egress[2].bind: "unix:///a"`,
				`spec.egress[4].bind: must be an IP address, is "unix:///b"`,
				`spec.egress[5].port.protocol: must be empty or one of TCP, UDP, GRPC, GRPC-Web, HTTP, HTTP_PROXY, HTTP2, HTTPS, TLS, Mongo, Redis, MySQL, is "NOPE"`,
				"spec.egress[5].port.targetPort: must not be set, is 1",
				"spec.egress[5].port.number: repeats spec.egress[4].port.number: 80",
				"spec.egress[6].captureMode: must be one of DEFAULT, IPTABLES, NONE, is 9",
				"spec.egress[6].port.number: must be 1–65535, is 65536",
			},
			warnings: []string{
				"spec.egress[7].bind: should not be set without a port",
			},
		},
		{
			name:       "no hosts",
			spec:       `egress: [{}]`,
			violations: []string{"spec.egress[0].hosts: must have at least one host"},
		},
		{
			name: "hosts",
			spec: `egress: [{hosts: [a.com, /a.com, ns/, Ns_/a.com, ns/short, "ns/*-a.com", ns/10.0.0.1, a/b/c.com, "~", ~~/a.com, "~*/a.com", ~./a.com]}]`,
			violations: []string{
				`spec.egress[0].hosts[0]: must be namespace/dnsName, is "a.com"`,
				`spec.egress[0].hosts[1]: must be namespace/dnsName, is "/a.com"`,
				`spec.egress[0].hosts[2]: must be namespace/dnsName, is "ns/"`,
				`spec.egress[0].hosts[3]: must have *, ., ~ or a namespace before the slash, is "Ns_/a.com"`,
				`spec.egress[0].hosts[4]: must be a full domain name, not a short one, is "short"`,
				`spec.egress[0].hosts[5]: must have a wildcard as a whole label, is "*-a.com"`,
				`spec.egress[0].hosts[6]: must be a domain name, is "10.0.0.1": its last label must not be a number`,
				`spec.egress[0].hosts[7]: must be a domain name, is "b/c.com": "b/c" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.egress[0].hosts[8]: must be namespace/dnsName, is "~"`,
				`spec.egress[0].hosts[9]: must have *, ., ~ or a namespace before the slash, is "~~/a.com"`,
			},
		},
		{
			name: "superfluous hosts",
			spec: `egress: [{hosts: [./a.com, "*/*", ./a.com]}]`,
			warnings: []string{
				"spec.egress[0].hosts[1]: is */*, which makes the other hosts superfluous",
				`spec.egress[0].hosts[2]: repeats hosts[0]: "./a.com"`,
			},
		},
		{name: "everything but", spec: `egress: [{hosts: ["*/*", ~prod/*]}]`},
		{name: "everything but a host", spec: `egress: [{hosts: ["*/*", ~/a.com]}]`},
	})
}
