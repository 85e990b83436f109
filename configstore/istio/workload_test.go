// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

const workloadEntryBase = `
address: 2.2.2.2
ports: {http: 8080}
labels: {app: a}
network: n
locality: region/zone
weight: 3
serviceAccount: default
`

func TestWorkloadEntry(t *testing.T) {
	testRules(t, istio.WorkloadEntry, workloadEntryBase, []ruleTest{
		{name: "domain name", spec: `address: a.example.com`},
		{name: "IPv6", spec: `address: 2001:db8::1`},
		{name: "socket", spec: `{address: "unix:///a/b", ports: {}}`},
		{name: "abstract socket", spec: `{address: "unix://@a", ports: {}}`},
		{
			name:       "no address",
			spec:       `{address: "", network: ""}`,
			violations: []string{"spec.address: is required, as there is no network"},
		},
		{
			name:     "network alone",
			spec:     `address: ""`,
			warnings: []string{"spec.address: is unset; only the network's gateways reach this workload"},
		},
		{
			name:       "bad address",
			spec:       `address: not_a_host!`,
			violations: []string{`spec.address: must be an IP address or a domain name, is "not_a_host!"`},
		},
		{
			name:       "CIDR",
			spec:       `address: 10.0.0.0/8`,
			violations: []string{`spec.address: must be an IP address or a domain name, is "10.0.0.0/8"`},
		},
		{
			name:       "socket with ports",
			spec:       `address: "unix:///x"`,
			violations: []string{"spec.ports: must be empty for a unix domain socket"},
		},
		{
			name:       "relative socket",
			spec:       `{address: "unix://x", ports: {}}`,
			violations: []string{`spec.address: must be an absolute unix domain socket path or @name, is "x"`},
		},
		{
			name: "ports",
			spec: `ports: {http: 70000, "": 1, a_b: 2, zero: 0}`,
			violations: []string{
				"spec.ports[]: key must be a DNS label (letters, digits and inner dashes, at most 63 characters)",
				"spec.ports[a_b]: key must be a DNS label (letters, digits and inner dashes, at most 63 characters)",
				"spec.ports[http]: must be 1–65535, is 70000",
				"spec.ports[zero]: must be 1–65535, is 0",
			},
		},
		{
			name: "labels",
			spec: `labels: {a/b/c: x, /a: x, a/: x, a..b/c: x, a.b/c_d.e: "", A.B/c: x, -a: x, a: -x, b: a_b.c-d}`,
			violations: []string{
				"spec.labels[-a]: key must end in a name (letters, digits, and inside also '-', '_' and '.', at most 63 characters)",
				"spec.labels[/a]: key must have a DNS name before the slash, at most 253 characters",
				`spec.labels[a]: must be empty or a label value (letters, digits, and inside also '-', '_' and '.', at most 63 characters), is "-x"`,
				"spec.labels[a..b/c]: key must have a DNS name before the slash, at most 253 characters",
				"spec.labels[a/]: key must end in a name (letters, digits, and inside also '-', '_' and '.', at most 63 characters)",
				"spec.labels[a/b/c]: key must have a DNS name before the slash, at most 253 characters",
			},
		},
	})
}

// TestWorkloadEntryWithoutLabelsIsNeverSelected is about a weakness of Istio
// 1.30, which says nothing.
func TestWorkloadEntryWithoutLabelsIsNeverSelected(t *testing.T) {
	testRules(t, istio.WorkloadEntry, workloadEntryBase, []ruleTest{
		{
			name:     "no labels",
			spec:     `labels: {}`,
			warnings: []string{"spec.labels: is empty, as are the object's labels: nothing will ever select this entry"},
		},
		{
			name: "labels of the object",
			spec: `labels: {}`,
			meta: configstore.Meta{Labels: map[string]string{"app": "a"}},
		},
	})
}

const workloadGroupBase = `
metadata: {labels: {app: a}, annotations: {x: y}}
template: {serviceAccount: default, ports: {http: 8080}, network: n}
probe:
  initialDelaySeconds: 1
  timeoutSeconds: 2
  periodSeconds: 3
  successThreshold: 4
  failureThreshold: 5
  httpGet: {port: 8080, path: /health, scheme: HTTPS, httpHeaders: [{name: X-A, value: b}]}
`

func TestLabelPrefixLength(t *testing.T) {
	prefix := strings.Repeat("a.", 126) + "b" // 253 characters
	testRules(t, istio.WorkloadEntry, workloadEntryBase, []ruleTest{
		{name: "at the limit", spec: `labels: {` + prefix + `/a: b}`},
		{
			name:       "above",
			spec:       `labels: {a` + prefix + `/a: b}`,
			violations: []string{"spec.labels[a" + prefix + "/a]: key must have a DNS name before the slash, at most 253 characters"},
		},
	})
}

func TestWorkloadGroup(t *testing.T) {
	testRules(t, istio.WorkloadGroup, workloadGroupBase, []ruleTest{
		{name: "no probe", spec: `probe: null`},
		{name: "no metadata", spec: `metadata: null`},
		{
			name:       "no template",
			spec:       `template: null`,
			violations: []string{"spec.template: is required"},
		},
		{name: "empty template", spec: `template: {}`},
		{
			name: "address and labels in the template",
			spec: `template: {address: not_a_host!, labels: {app: a}}`,
			warnings: []string{
				"spec.template.address: has no effect: each workload brings its own",
				"spec.template.labels: should be set in spec.metadata.labels instead",
			},
		},
		{
			name:       "labels",
			spec:       `metadata: {labels: {a b: c}}`,
			violations: []string{"spec.metadata.labels[a b]: key must end in a name (letters, digits, and inside also '-', '_' and '.', at most 63 characters)"},
		},
		{
			name: "negative numbers",
			spec: `probe: {initialDelaySeconds: -1, timeoutSeconds: -2, periodSeconds: -3, successThreshold: -4, failureThreshold: -5, tcpSocket: {port: 1}}`,
			violations: []string{
				"spec.probe.initialDelaySeconds: must not be negative, is -1",
				"spec.probe.timeoutSeconds: must not be negative, is -2",
				"spec.probe.periodSeconds: must not be negative, is -3",
				"spec.probe.successThreshold: must not be negative, is -4",
				"spec.probe.failureThreshold: must not be negative, is -5",
			},
		},
		{
			name:       "no method",
			spec:       `probe: {}`,
			violations: []string{"spec.probe: must have one of httpGet, tcpSocket, exec"},
		},
		{
			name: "httpGet",
			spec: `probe: {httpGet: {scheme: FTP, httpHeaders: [{value: a}, {name: "a b"}]}}`,
			violations: []string{
				"spec.probe.httpGet.port: must be 1–65535, is 0",
				`spec.probe.httpGet.scheme: must be HTTP or HTTPS, is "FTP"`,
				"spec.probe.httpGet.httpHeaders[0].name: is required",
				`spec.probe.httpGet.httpHeaders[1].name: must be a header name (letters, digits, '-' and '_'), is "a b"`,
			},
		},
		{
			name:       "tcpSocket",
			spec:       `probe: {tcpSocket: {port: 65536}}`,
			violations: []string{"spec.probe.tcpSocket.port: must be 1–65535, is 65536"},
		},
		{name: "exec", spec: `probe: {exec: {command: [a, ""]}}`},
		{
			name:       "exec without command",
			spec:       `probe: {exec: {}}`,
			violations: []string{"spec.probe.exec.command: is required"},
		},
		{
			name:       "exec with an empty command",
			spec:       `probe: {exec: {command: [""]}}`,
			violations: []string{"spec.probe.exec.command[0]: must not be empty"},
		},
		{
			name:       "grpc",
			spec:       `probe: {grpc: {port: 80}}`,
			violations: []string{"spec.probe.grpc: must be httpGet, tcpSocket or exec instead"},
		},
	})
}
