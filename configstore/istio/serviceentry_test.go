// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"strings"
	"testing"

	"istio.io/api/label"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

const serviceEntryBase = `
hosts: [a.example.com]
addresses: [10.0.0.1]
ports:
- {number: 80, name: http, protocol: HTTP}
- {number: 443, name: tls, protocol: TLS, targetPort: 8443}
location: MESH_INTERNAL
resolution: STATIC
endpoints:
- address: 2.2.2.2
  ports: {http: 8080}
  labels: {app: a, app.kubernetes.io/name: a}
- {address: "unix:///var/run/socket", network: n}
`

// onePortBase has one port, as an entry with Unix sockets must have.
const onePortBase = `
hosts: [a.example.com]
ports: [{number: 80, name: http, protocol: HTTP}]
resolution: STATIC
endpoints: [{address: "unix:///var/run/socket"}, {address: "unix://@abstract"}, {address: 2001:db8::1}]
`

func TestServiceEntryHosts(t *testing.T) {
	testRules(t, istio.ServiceEntry, onePortBase, []ruleTest{
		{
			name:       "none",
			spec:       `hosts: []`,
			violations: []string{"spec.hosts: must have at least one host"},
		},
		{
			name:       "everything",
			spec:       `hosts: ["*"]`,
			violations: []string{"spec.hosts[0]: must not be *"},
		},
		{name: "wildcard", spec: `hosts: ["*.example.com"]`},
		{name: "short", spec: `hosts: [a]`},
		{name: "trailing dot", spec: `hosts: [a.example.com.]`},
		{name: "upper case", spec: `hosts: [A.Example.com]`},
		{
			name: "partial wildcard",
			spec: `hosts: ["*-a.example.com"]`,
			warnings: []string{
				`spec.hosts[0]: is "*-a.example.com"; a wildcard that is not a whole label matches HTTP hosts only, no TLS server names`,
			},
		},
		{
			name: "no domain name",
			spec: `hosts: ["", a_b.example.com, a..b, a.*.com, "a*.example.com", 1.2.3.4, "-a.com"]`,
			violations: []string{
				"spec.hosts[0]: is required",
				`spec.hosts[1]: must be a domain name, is "a_b.example.com": "a_b" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.hosts[2]: must be a domain name, is "a..b": "" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.hosts[3]: must be a domain name, is "a.*.com": "*" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.hosts[4]: must be a domain name, is "a*.example.com": "a*" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.hosts[5]: must be a domain name, is "1.2.3.4": its last label must not be a number`,
				`spec.hosts[6]: must be a domain name, is "-a.com": "-a" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
			},
			warnings: []string{
				`spec.hosts[3]: is "a.*.com"; a wildcard that is not a whole label matches HTTP hosts only, no TLS server names`,
				`spec.hosts[4]: is "a*.example.com"; a wildcard that is not a whole label matches HTTP hosts only, no TLS server names`,
			},
		},
		{
			name:       "too long",
			spec:       `hosts: [` + strings.Repeat("a.", 128) + `]`,
			violations: []string{"spec.hosts[0]: must have at most 255 characters, has 256"},
		},
		{
			name:       "label too long",
			spec:       `hosts: [` + strings.Repeat("a", 64) + `.com]`,
			violations: []string{`spec.hosts[0]: must be a domain name, is "` + strings.Repeat("a", 64) + `.com": "` + strings.Repeat("a", 64) + `" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`},
		},
		{
			name:     "repeated",
			spec:     `hosts: [a.example.com, b.example.com, a.example.com]`,
			warnings: []string{`spec.hosts[2]: repeats spec.hosts[0]: "a.example.com"`},
		},
		{
			name:     "repeated among many",
			spec:     `hosts: [a.b, b.b, c.b, d.b, e.b, f.b, g.b, h.b, i.b, j.b, b.b, j.b]`,
			warnings: []string{`spec.hosts[10]: repeats spec.hosts[1]: "b.b"`, `spec.hosts[11]: repeats spec.hosts[9]: "j.b"`},
		},
	})
}

func TestServiceEntryAddresses(t *testing.T) {
	testRules(t, istio.ServiceEntry, onePortBase, []ruleTest{
		{name: "good", spec: `addresses: [10.0.0.1, 10.1.0.0/16, "2001:db8::1", "2001:db8::/32"]`},
		{
			name: "bad",
			spec: `addresses: ["", a.example.com, 10.0.0.0/33, 10.0.0.0/8/8, "unix:///a"]`,
			violations: []string{
				`spec.addresses[0]: must be an IP address or a CIDR block, is ""`,
				`spec.addresses[1]: must be an IP address or a CIDR block, is "a.example.com"`,
				`spec.addresses[2]: must be an IP address or a CIDR block, is "10.0.0.0/33"`,
				`spec.addresses[3]: must be an IP address or a CIDR block, is "10.0.0.0/8/8"`,
				`spec.addresses[4]: must be an IP address or a CIDR block, is "unix:///a"`,
			},
		},
		{
			name:       "CIDR with DNS",
			spec:       `{addresses: [10.0.0.1, 10.0.0.0/8], resolution: DNS, endpoints: []}`,
			violations: []string{`spec.addresses[1]: must not be a CIDR block for resolution DNS, is "10.0.0.0/8"`},
		},
		{name: "CIDR with NONE", spec: `{addresses: [10.0.0.0/8], resolution: NONE, endpoints: []}`},
		{
			name:     "repeated",
			spec:     `addresses: [10.0.0.1, 10.0.0.1]`,
			warnings: []string{`spec.addresses[1]: repeats spec.addresses[0]: "10.0.0.1"`},
		},
	})
}

func TestServiceEntryPorts(t *testing.T) {
	testRules(t, istio.ServiceEntry, `{hosts: [a.example.com], addresses: [10.0.0.1], resolution: STATIC}`, []ruleTest{
		{name: "none", spec: `ports: []`},
		{
			name: "all that can be wrong with one",
			spec: `ports: [{number: 70000, name: Bad_Name, protocol: NOPE, targetPort: 65536}]`,
			violations: []string{
				`spec.ports[0].name: must be a DNS label (letters, digits and inner dashes, at most 63 characters), is "Bad_Name"`,
				"spec.ports[0].number: must be 1–65535, is 70000",
				"spec.ports[0].targetPort: must be 0 (unset) or 1–65535, is 65536",
				`spec.ports[0].protocol: must be empty or one of TCP, UDP, GRPC, GRPC-Web, HTTP, HTTP_PROXY, HTTP2, HTTPS, TLS, Mongo, Redis, MySQL, is "NOPE"`,
			},
		},
		{
			name:       "empty",
			spec:       `ports: [{}]`,
			violations: []string{"spec.ports[0].name: is required", "spec.ports[0].number: must be 1–65535, is 0"},
		},
		{
			name: "repeated",
			spec: `ports: [{number: 80, name: a}, {number: 81, name: a}, {number: 80, name: b}]`,
			violations: []string{
				`spec.ports[1].name: repeats spec.ports[0].name: "a"`,
				"spec.ports[2].number: repeats spec.ports[0].number: 80",
			},
		},
		{
			name: "every protocol in every letter case",
			spec: `
ports:
- {number: 1, name: a, protocol: tcp}
- {number: 2, name: b, protocol: Udp}
- {number: 3, name: c, protocol: grpc}
- {number: 4, name: d, protocol: gRPC-web}
- {number: 5, name: e, protocol: http}
- {number: 6, name: f, protocol: Http_Proxy}
- {number: 7, name: g, protocol: http2}
- {number: 8, name: h, protocol: https}
- {number: 9, name: i, protocol: tls}
- {number: 10, name: j, protocol: MONGO}
- {number: 11, name: k, protocol: redis}
- {number: 12, name: l, protocol: mySQL}
- {number: 13, name: m}`,
		},
		{
			name:       "the multiplexed protocols of Istio's own tunnels",
			spec:       `ports: [{number: 80, name: a, protocol: HBONE}]`,
			violations: []string{`spec.ports[0].protocol: must be empty or one of TCP, UDP, GRPC, GRPC-Web, HTTP, HTTP_PROXY, HTTP2, HTTPS, TLS, Mongo, Redis, MySQL, is "HBONE"`},
		},
	})
}

// TestLowerCaseTCPEscapesTheAddressWarning is about a weakness of Istio 1.30,
// which compares the protocol with "TCP" alone.
func TestLowerCaseTCPEscapesTheAddressWarning(t *testing.T) {
	withoutAllocation := configstore.Meta{Labels: map[string]string{label.NetworkingEnableAutoallocateIp.Name: "False"}}
	warning := func(protocol string) []string {
		return []string{`spec.ports[0].protocol: is "` + protocol + `" without spec.addresses: the port takes in traffic to every address`}
	}
	testRules(t, istio.ServiceEntry, `{hosts: [a.example.com], resolution: STATIC, ports: [{number: 80, name: a, protocol: TCP}]}`, []ruleTest{
		{name: "allocated", meta: configstore.Meta{Labels: map[string]string{label.NetworkingEnableAutoallocateIp.Name: "true"}}},
		{name: "not allocated", meta: withoutAllocation, warnings: warning("TCP")},
		{name: "lower case", meta: withoutAllocation, spec: `ports: [{number: 80, name: a, protocol: tcp}]`, warnings: warning("tcp")},
		{name: "no protocol", meta: withoutAllocation, spec: `ports: [{number: 80, name: a}]`, warnings: warning("")},
		{name: "another protocol", meta: withoutAllocation, spec: `ports: [{number: 80, name: a, protocol: Redis}]`},
		{name: "never allocated for NONE", spec: `resolution: NONE`, warnings: warning("TCP")},
		{name: "addresses", meta: withoutAllocation, spec: `addresses: [10.0.0.1]`},
	})
}

func TestServiceEntrySelector(t *testing.T) {
	testRules(t, istio.ServiceEntry, `
hosts: [a.example.com]
ports: [{number: 80, name: http, protocol: HTTP}]
resolution: STATIC
workloadSelector: {labels: {app: a}}`, []ruleTest{
		{
			name:     "empty",
			spec:     `workloadSelector: {}`,
			warnings: []string{"spec.workloadSelector.labels: is empty: will be applied to all workloads in the namespace"},
		},
		{
			name:       "beside endpoints",
			spec:       `endpoints: [{address: 2.2.2.2}]`,
			violations: []string{"spec.endpoints: must be empty together with a workloadSelector"},
		},
		{
			name: "wildcards and empty keys",
			spec: `workloadSelector: {labels: {"": a, "a*": b, c: "d*"}}`,
			violations: []string{
				"spec.workloadSelector.labels[]: key must not be empty",
				"spec.workloadSelector.labels[a*]: key must not contain a wildcard",
				`spec.workloadSelector.labels[c]: must not contain a wildcard, is "d*"`,
			},
		},
		{
			name:     "with NONE",
			spec:     `resolution: NONE`,
			warnings: []string{"spec.workloadSelector: has no effect for resolution NONE"},
		},
		{name: "with DNS", spec: `resolution: DNS`},
	})
}

func TestServiceEntrySeveralHosts(t *testing.T) {
	testRules(t, istio.ServiceEntry, `
hosts: [a.example.com, b.example.com]
ports:
- {number: 80, name: http, protocol: HTTP}
- {number: 443, name: tls, protocol: HTTPS}
resolution: STATIC`, []ruleTest{
		{
			name: "indistinguishable",
			spec: `ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: tcp, protocol: TCP}, {number: 82, name: c}, {number: 83, name: d, protocol: UDP}]`,
			violations: []string{
				`spec.ports[1].protocol: must be an HTTP or TLS protocol, as there are 2 hosts, is "TCP"`,
				`spec.ports[2].protocol: must be an HTTP or TLS protocol, as there are 2 hosts, is ""`,
				`spec.ports[3].protocol: must be an HTTP or TLS protocol, as there are 2 hosts, is "UDP"`,
			},
		},
		{name: "one host", spec: `{hosts: [a.example.com], ports: [{number: 81, name: tcp, protocol: TCP}]}`},
		{name: "NONE", spec: `{resolution: NONE, addresses: [10.0.0.1], ports: [{number: 81, name: tcp, protocol: TCP}]}`},
	})
}

func TestServiceEntryExportTo(t *testing.T) {
	testRules(t, istio.ServiceEntry, onePortBase, []ruleTest{
		{name: "own", spec: `exportTo: [.]`},
		{name: "all", spec: `exportTo: ["*"]`},
		{name: "nobody", spec: `exportTo: ["~"]`},
		{name: "some", spec: `exportTo: [., ns1, ns2]`},
		{
			name:       "repeated",
			spec:       `exportTo: [ns1, ns2, ns1]`,
			violations: []string{`spec.exportTo[2]: repeats spec.exportTo[0]: "ns1"`},
		},
		{
			name:       "own namespace twice",
			spec:       `exportTo: [., ns]`,
			violations: []string{`spec.exportTo[1]: repeats spec.exportTo[0]: "ns"`},
		},
		{
			name:       "no namespace",
			spec:       `exportTo: [Bad_NS, ""]`,
			violations: []string{`spec.exportTo[0]: must be ., * or a namespace, is "Bad_NS"`, `spec.exportTo[1]: must be ., * or a namespace, is ""`},
		},
		{
			name:       "all and some",
			spec:       `exportTo: [ns1, "*"]`,
			violations: []string{"spec.exportTo: must not name others together with *"},
		},
		{
			name:       "nobody and some",
			spec:       `exportTo: ["~", ns1]`,
			violations: []string{"spec.exportTo: must not name others together with ~"},
		},
	})
}
