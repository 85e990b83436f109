// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"strings"
	"testing"

	"istio.io/api/label"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

func TestServiceEntryResolution(t *testing.T) {
	testRules(t, istio.ServiceEntry, `
hosts: [a.example.com]
ports: [{number: 80, name: http, protocol: HTTP}]
resolution: STATIC
endpoints: [{address: 2.2.2.2, ports: {http: 8080}}]`, []ruleTest{
		{
			name:       "NONE with endpoints",
			spec:       `resolution: NONE`,
			violations: []string{"spec.endpoints: must be empty for resolution NONE"},
		},
		{name: "NONE", spec: `{resolution: NONE, endpoints: []}`},
		{
			name: "STATIC with bad endpoints",
			spec: `
endpoints:
- {address: a.example.com}
- {}
- {address: 2.2.2.2, ports: {http: 0, other: 1, Bad_: 70000}, labels: {a b: c, d: "e f"}}`,
			violations: []string{
				`spec.endpoints[0].address: must be an IP address or a unix domain socket for resolution STATIC, is "a.example.com"`,
				"spec.endpoints[1].address: is required, as there is no network",
				"spec.endpoints[2].ports[Bad_]: key must be a DNS label (letters, digits and inner dashes, at most 63 characters)",
				"spec.endpoints[2].ports[Bad_]: must be 1–65535, is 70000",
				"spec.endpoints[2].ports[http]: must be 1–65535, is 0",
				"spec.endpoints[2].ports[other]: must name a port of the entry",
				"spec.endpoints[2].labels[a b]: key must end in a name (letters, digits, and inside also '-', '_' and '.', at most 63 characters)",
				`spec.endpoints[2].labels[d]: must be empty or a label value (letters, digits, and inside also '-', '_' and '.', at most 63 characters), is "e f"`,
			},
		},
		{
			name:     "STATIC with a network alone",
			spec:     `endpoints: [{network: n}]`,
			warnings: []string{"spec.endpoints[0].address: is unset; only the network's gateways reach this workload"},
		},
		{name: "STATIC without endpoints", spec: `endpoints: []`},
		{
			name: "STATIC with sockets",
			spec: `
endpoints:
- {address: "unix:///a/b"}
- {address: "unix://@a"}
- {address: "unix://"}
- {address: "unix://a"}
- {address: "unix:///a/"}
- {address: "unix:///a", ports: {http: 1}}
- {address: "unix:///` + strings.Repeat("a", 106) + `"}
- {address: "unix:///` + strings.Repeat("a", 107) + `"}`,
			violations: []string{
				`spec.endpoints[2].address: must name a unix domain socket after "unix://"`,
				`spec.endpoints[3].address: must be an absolute unix domain socket path or @name, is "a"`,
				`spec.endpoints[4].address: must be a unix domain socket, not a directory, is "/a/"`,
				"spec.endpoints[5].ports: must be empty for a unix domain socket",
				"spec.endpoints[7].address: must be a unix domain socket path of at most 107 bytes, has 108",
			},
		},
		{
			name:       "STATIC with a socket for two ports",
			spec:       `{ports: [{number: 80, name: http}, {number: 81, name: b}], endpoints: [{address: "unix:///a"}]}`,
			violations: []string{"spec.endpoints[0].address: must not be a unix domain socket, as the entry has not exactly one port but 2"},
		},
		{name: "DNS with endpoints", spec: `{resolution: DNS, hosts: ["*.example.com"], endpoints: [{address: 2.2.2.2}, {address: b.example.com}]}`},
		{
			name: "DNS with bad endpoints",
			spec: `
resolution: DNS
endpoints: [{}, {network: n}, {address: "unix:///a"}, {address: a_b}, {address: "*.a"}, {address: b.com, ports: {x: 1, http: 0}, labels: {"": ""}}]`,
			violations: []string{
				`spec.endpoints[0].address: must be an IP address or a domain name, is ""`,
				`spec.endpoints[1].address: must be an IP address or a domain name, is ""`,
				`spec.endpoints[2].address: must be an IP address or a domain name, is "unix:///a"`,
				`spec.endpoints[3].address: must be an IP address or a domain name, is "a_b"`,
				`spec.endpoints[4].address: must be an IP address or a domain name, is "*.a"`,
				"spec.endpoints[5].ports[http]: must be 1–65535, is 0",
				"spec.endpoints[5].ports[x]: must name a port of the entry",
				"spec.endpoints[5].labels[]: key must not be empty",
			},
		},
		{
			name: "DNS of wildcards",
			spec: `{resolution: DNS, hosts: ["*.a.com", b.com, "*.c.com"], endpoints: []}`,
			violations: []string{
				`spec.hosts[0]: must not be a wildcard for resolution DNS without endpoints, is "*.a.com"`,
				`spec.hosts[2]: must not be a wildcard for resolution DNS without endpoints, is "*.c.com"`,
			},
		},
		{
			name:       "DNS_ROUND_ROBIN of a wildcard",
			spec:       `{resolution: DNS_ROUND_ROBIN, hosts: ["*.a.com"], endpoints: []}`,
			violations: []string{`spec.hosts[0]: must not be a wildcard for resolution DNS_ROUND_ROBIN without endpoints, is "*.a.com"`},
		},
		{name: "DNS_ROUND_ROBIN with one endpoint", spec: `resolution: DNS_ROUND_ROBIN`},
		{
			name:       "DNS_ROUND_ROBIN with two endpoints",
			spec:       `{resolution: DNS_ROUND_ROBIN, endpoints: [{address: a.com}, {address: b.com}]}`,
			violations: []string{"spec.endpoints: must have at most one element for resolution DNS_ROUND_ROBIN, has 2"},
		},
		{
			name:     "DNS with addresses and several hosts",
			spec:     `{resolution: DNS, hosts: [a.com, b.com], addresses: [10.0.0.1], ports: [{number: 1, name: http, protocol: HTTP}, {number: 2, name: b, protocol: TLS}]}`,
			warnings: []string{"spec.ports[1].protocol: is TLS, which is matched by address alone: the hosts share their addresses"},
		},
		{
			name: "unknown values",
			spec: `{resolution: 9, location: 7}`,
			violations: []string{
				"spec.location: must be one of MESH_EXTERNAL, MESH_INTERNAL, is 7",
				"spec.resolution: must be one of NONE, STATIC, DNS, DNS_ROUND_ROBIN, DYNAMIC_DNS, is 9",
			},
		},
	})
}

func TestServiceEntryDynamicDNS(t *testing.T) {
	waypoint := func(name string) configstore.Meta {
		return configstore.Meta{Labels: map[string]string{label.IoIstioUseWaypoint.Name: name}}
	}
	testRules(t, istio.ServiceEntry, `
hosts: ["*.example.com", "*-a.example.com"]
ports:
- {number: 80, name: a, protocol: HTTP}
- {number: 81, name: b, protocol: HTTP2}
- {number: 82, name: c, protocol: GRPC}
- {number: 443, name: d, protocol: TLS}
resolution: DYNAMIC_DNS`, []ruleTest{
		{
			name:       "plain host",
			spec:       `hosts: ["*.example.com", a.example.com]`,
			violations: []string{`spec.hosts[1]: must be a wildcard for resolution DYNAMIC_DNS, is "a.example.com"`},
		},
		{
			name: "addresses, endpoints and a selector",
			spec: `{addresses: [10.0.0.1, 10.0.0.0/8], endpoints: [{address: 2.2.2.2}], workloadSelector: {labels: {a: b}}}`,
			violations: []string{
				"spec.endpoints: must be empty together with a workloadSelector",
				`spec.addresses[1]: must not be a CIDR block for resolution DYNAMIC_DNS, is "10.0.0.0/8"`,
				"spec.addresses: must be empty for resolution DYNAMIC_DNS",
				"spec.endpoints: must be empty for resolution DYNAMIC_DNS",
			},
			warnings: []string{"spec.workloadSelector: has no effect for resolution DYNAMIC_DNS"},
		},
		{
			name: "protocols",
			spec: `{hosts: ["*.example.com"], ports: [{number: 80, name: a, protocol: HTTPS}, {number: 81, name: b, protocol: TCP}, {number: 82, name: c}]}`,
			violations: []string{
				`spec.ports[0].protocol: must be HTTP, HTTP2, GRPC or TLS for resolution DYNAMIC_DNS, is "HTTPS"`,
				`spec.ports[1].protocol: must be HTTP, HTTP2, GRPC or TLS for resolution DYNAMIC_DNS, is "TCP"`,
				`spec.ports[2].protocol: must be HTTP, HTTP2, GRPC or TLS for resolution DYNAMIC_DNS, is ""`,
			},
		},
		{name: "internal", spec: `location: MESH_INTERNAL`},
		{name: "external with a waypoint", meta: waypoint("w")},
		{
			name:       "internal with a waypoint",
			meta:       waypoint("w"),
			spec:       `location: MESH_INTERNAL`,
			violations: []string{"spec.location: must be MESH_EXTERNAL for resolution DYNAMIC_DNS with a waypoint, is MESH_INTERNAL"},
		},
		{name: "internal without a waypoint", meta: waypoint("none"), spec: `location: MESH_INTERNAL`},
	})
}
