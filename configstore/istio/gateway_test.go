// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

const gatewayBase = `
selector: {app: gateway}
servers:
- port: {number: 80, name: http, protocol: HTTP}
  hosts: ["*", ./a.example.com, "ns/*.example.com", "*/b.example.com", 10.0.0.1]
  tls: {httpsRedirect: true}
  name: first
- port: {number: 443, name: https, protocol: HTTPS}
  bind: 0.0.0.0
  hosts: [a.example.com]
  tls: {mode: SIMPLE, credentialName: a, minProtocolVersion: TLSV1_2, maxProtocolVersion: TLSV1_3, cipherSuites: [AES128-SHA]}
- port: {number: 8443, name: files, protocol: HTTPS}
  hosts: [a.example.com]
  tls: {mode: MUTUAL, serverCertificate: a, privateKey: b, caCertificates: c, caCrl: d, subjectAltNames: [e]}
- port: {number: 9443, name: tls, protocol: TLS}
  hosts: [a.example.com]
  tls: {mode: PASSTHROUGH}
- port: {number: 15443, name: auto, protocol: TLS}
  hosts: ["*.local"]
  tls: {mode: AUTO_PASSTHROUGH}
- port: {number: 0, name: socket, protocol: TCP}
  bind: unix://@socket
  hosts: ["*"]
`

func TestGateway(t *testing.T) {
	testRules(t, istio.Gateway, gatewayBase, []ruleTest{
		{
			name:       "name",
			meta:       configstore.Meta{Name: "a.b"},
			violations: []string{`metadata.name: must be a DNS label (letters, digits and inner dashes, at most 63 characters), is "a.b"`},
		},
		{
			name: "generated",
			meta: configstore.Meta{Name: "a.b", Annotations: map[string]string{"internal.istio.io/gateway-semantics": "gateway"}},
			spec: `servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [~/a.example.com]}]`,
		},
		{name: "no servers", spec: `servers: []`, violations: []string{"spec.servers: must have at least one server"}},
		{
			name: "selector",
			spec: `selector: {"": a, b: "*"}`,
			warnings: []string{
				`spec.selector[]: selects no workload: no label has this key and value, "a"`,
				`spec.selector[b]: selects no workload: no label has this key and value, "*"`,
			},
		},
		{
			name: "empty server",
			spec: `servers: [{}]`,
			violations: []string{
				"spec.servers[0].hosts: must have at least one host",
				"spec.servers[0].port: is required",
			},
		},
		{
			name: "ports",
			spec: `
servers:
- {hosts: ["*"], port: {}}
- {hosts: ["*"], port: {number: 65536, name: a_b, protocol: NOPE, targetPort: 1}, bind: a}
- {hosts: ["*"], port: {number: 1, name: a, protocol: TCP}, bind: "unix://@a"}
- {hosts: ["*"], port: {number: 2, name: a, protocol: TCP}, name: s, defaultEndpoint: 127.0.0.1:80}
- {hosts: ["*"], port: {number: 3, name: b, protocol: TCP}, name: s, bind: "unix://"}`,
			violations: []string{
				"spec.servers[0].port.name: is required",
				"spec.servers[0].port.number: must be 1–65535, is 0",
				"spec.servers[0].port.protocol: is required",
				`spec.servers[1].bind: must be an IP address, is "a"`,
				"spec.servers[1].port.number: must be 1–65535, is 65536",
				`spec.servers[1].port.protocol: must be empty or one of TCP, UDP, GRPC, GRPC-Web, HTTP, HTTP_PROXY, HTTP2, HTTPS, TLS, Mongo, Redis, MySQL, is "NOPE"`,
				"spec.servers[1].port.targetPort: must not be set, is 1",
				"spec.servers[2].port.number: must be 0 for a unix domain socket, is 1",
				`spec.servers[3].port.name: repeats spec.servers[2].port.name: "a"`,
				`spec.servers[4].bind: must name a unix domain socket after "unix://"`,
				"spec.servers[4].port.number: must be 0 for a unix domain socket, is 3",
				`spec.servers[4].name: repeats spec.servers[3].name: "s"`,
			},
			warnings: []string{
				"spec.servers[3].defaultEndpoint: has no effect: Istio does not implement it",
			},
		},
		{
			name: "hosts",
			spec: `
servers:
- port: {number: 80, name: http, protocol: HTTP}
  hosts: [short, "", /a.com, ns/, a/b/c.com, Ns_/a.com, ~/a.com, "*-a.com", "a.*.com", "ns/*", a.com, a.com]`,
			violations: []string{
				`spec.servers[0].hosts[0]: must be a full domain name, not a short one, is "short"`,
				"spec.servers[0].hosts[1]: is required",
				`spec.servers[0].hosts[2]: must be dnsName or namespace/dnsName, is "/a.com"`,
				`spec.servers[0].hosts[3]: must be dnsName or namespace/dnsName, is "ns/"`,
				`spec.servers[0].hosts[4]: must be a domain name, is "b/c.com": "b/c" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.servers[0].hosts[5]: must have *, . or a namespace before the slash, is "Ns_/a.com"`,
				`spec.servers[0].hosts[6]: must have *, . or a namespace before the slash, is "~/a.com"`,
				`spec.servers[0].hosts[7]: must have a wildcard as a whole label, is "*-a.com"`,
				`spec.servers[0].hosts[8]: must be a domain name, is "a.*.com": "*" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
			},
			warnings: []string{`spec.servers[0].hosts[11]: repeats hosts[10]: "a.com"`},
		},
		{
			name: "TLS where it does not belong",
			spec: `
servers:
- {hosts: ["*"], port: {number: 1, name: a, protocol: HTTPS}}
- {hosts: ["*"], port: {number: 2, name: b, protocol: TCP}, tls: {mode: PASSTHROUGH}}
- {hosts: ["*"], port: {number: 3, name: c, protocol: HTTP}, tls: {mode: SIMPLE, credentialName: a}}
- {hosts: ["*"], port: {number: 4, name: d, protocol: HTTP}, tls: {}}`,
			violations: []string{
				"spec.servers[0].tls: is required for protocol HTTPS",
				`spec.servers[1].tls: must not be set for protocol "TCP", only for HTTPS and TLS`,
				"spec.servers[2].tls.mode: must not be SIMPLE for protocol HTTP, only for HTTPS and TLS",
			},
		},
	})
}

func TestServerTLS(t *testing.T) {
	// tls makes a Gateway's servers of one TLS setting.
	tls := func(settings string) string {
		return `servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {` + settings + `}}]`
	}
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	testRules(t, istio.Gateway, gatewayBase, []ruleTest{
		{
			name: "unknown values",
			spec: tls(`mode: 9, minProtocolVersion: 8, maxProtocolVersion: 9, credentialName: a`),
			violations: []string{
				"spec.servers[0].tls.mode: must be one of PASSTHROUGH, SIMPLE, MUTUAL, AUTO_PASSTHROUGH, ISTIO_MUTUAL, OPTIONAL_MUTUAL, is 9",
				"spec.servers[0].tls.minProtocolVersion: must be one of TLS_AUTO, TLSV1_0, TLSV1_1, TLSV1_2, TLSV1_3, is 8",
				"spec.servers[0].tls.maxProtocolVersion: must be one of TLS_AUTO, TLSV1_0, TLSV1_1, TLSV1_2, TLSV1_3, is 9",
			},
		},
		{
			name:       "no certificate",
			spec:       tls(`mode: SIMPLE`),
			violations: []string{"spec.servers[0].tls: must have one of credentialName, credentialNames, tlsCertificates, serverCertificate with privateKey for mode SIMPLE"},
		},
		{
			name:       "two sources",
			spec:       tls(`mode: SIMPLE, credentialName: a, serverCertificate: b, privateKey: c`),
			violations: []string{"spec.servers[0].tls: must have only one of credentialName, credentialNames, tlsCertificates, serverCertificate with privateKey"},
		},
		{
			name:       "half a pair",
			spec:       tls(`mode: SIMPLE, serverCertificate: b`),
			violations: []string{"spec.servers[0].tls.privateKey: is required: certificate and key go together"},
		},
		{name: "two credentials", spec: tls(`mode: MUTUAL, credentialNames: [a, b]`)},
		{
			name: "three credentials",
			spec: tls(`mode: SIMPLE, credentialNames: [a, b, ""]`),
			violations: []string{
				"spec.servers[0].tls.credentialNames: must have at most 2 elements, has 3",
				"spec.servers[0].tls.credentialNames[2]: must not be empty",
			},
		},
		{name: "two pairs", spec: tls(`mode: SIMPLE, tlsCertificates: [{serverCertificate: a, privateKey: b}, {serverCertificate: c, privateKey: d}]`)},
		{
			name: "three pairs",
			spec: tls(`mode: SIMPLE, tlsCertificates: [{serverCertificate: a, privateKey: b}, {}, {serverCertificate: a, privateKey: b, caCertificates: c}]`),
			violations: []string{
				"spec.servers[0].tls.tlsCertificates: must have at most 2 elements, has 3",
				"spec.servers[0].tls.tlsCertificates[1].serverCertificate: is required: certificate and key go together",
				"spec.servers[0].tls.tlsCertificates[1].privateKey: is required: certificate and key go together",
				"spec.servers[0].tls.tlsCertificates[2].caCertificates: must be set together with tlsCertificates instead",
			},
		},
		{
			name:       "mutual without authority",
			spec:       tls(`mode: MUTUAL, serverCertificate: a, privateKey: b`),
			violations: []string{"spec.servers[0].tls.caCertificates: is required for mode MUTUAL without a credential name"},
		},
		{
			name: "mutual with the authority's credential",
			spec: tls(`mode: OPTIONAL_MUTUAL, serverCertificate: a, privateKey: b, caCertCredentialName: c`),
			violations: []string{
				"spec.servers[0].tls.caCertificates: is required for mode OPTIONAL_MUTUAL without a credential name",
			},
		},
		{
			name: "revocations without clients' certificates",
			spec: tls(`mode: SIMPLE, credentialName: a, caCrl: b`),
			warnings: []string{
				"spec.servers[0].tls.caCrl: has no effect together with a credential name",
			},
		},
		{
			name: "revocations beside a credential",
			spec: tls(`mode: MUTUAL, credentialName: a, caCrl: b`),
			warnings: []string{
				"spec.servers[0].tls.caCrl: has no effect together with a credential name",
			},
		},
		{
			name:     "names without clients' certificates",
			spec:     tls(`mode: SIMPLE, credentialName: a, subjectAltNames: [b]`),
			warnings: []string{"spec.servers[0].tls.subjectAltNames: has no effect for mode SIMPLE"},
		},
		{name: "Istio's own certificates", spec: tls(`mode: ISTIO_MUTUAL`)},
		{
			name: "Istio's own certificates and others",
			spec: tls(`mode: ISTIO_MUTUAL, serverCertificate: a, privateKey: b, caCertificates: c, caCrl: d, credentialName: e, caCertCredentialName: f, credentialNames: [g], tlsCertificates: [{}], subjectAltNames: [h]`),
			violations: []string{
				"spec.servers[0].tls: must have only one of credentialName, credentialNames, tlsCertificates, serverCertificate with privateKey",
				"spec.servers[0].tls.serverCertificate: must not be set for mode ISTIO_MUTUAL",
				"spec.servers[0].tls.privateKey: must not be set for mode ISTIO_MUTUAL",
				"spec.servers[0].tls.caCertificates: must not be set for mode ISTIO_MUTUAL",
				"spec.servers[0].tls.credentialName: must not be set for mode ISTIO_MUTUAL",
				"spec.servers[0].tls.credentialNames: must not be set for mode ISTIO_MUTUAL",
				"spec.servers[0].tls.tlsCertificates: must not be set for mode ISTIO_MUTUAL",
			},
			warnings: []string{
				"spec.servers[0].tls.caCrl: has no effect for mode ISTIO_MUTUAL",
				"spec.servers[0].tls.caCertCredentialName: has no effect for mode ISTIO_MUTUAL",
			},
		},
		{
			name:     "certificates to pass through",
			spec:     tls(`mode: PASSTHROUGH, credentialName: a`),
			warnings: []string{"spec.servers[0].tls: the certificates have no effect for mode PASSTHROUGH"},
		},
		{
			name:       "versions upside down",
			spec:       tls(`mode: SIMPLE, credentialName: a, minProtocolVersion: TLSV1_3, maxProtocolVersion: TLSV1_2`),
			violations: []string{"spec.servers[0].tls.minProtocolVersion: must not be above maxProtocolVersion TLSV1_2, is TLSV1_3"},
		},
		{name: "only the lowest version", spec: tls(`mode: SIMPLE, credentialName: a, minProtocolVersion: TLSV1_3`)},
		{
			name:     "old version",
			spec:     tls(`mode: SIMPLE, credentialName: a, minProtocolVersion: TLSV1_1`),
			warnings: []string{"spec.servers[0].tls.minProtocolVersion: is TLSV1_1, which has none of the default ciphers; set cipherSuites"},
		},
		{
			name: "ciphers",
			spec: tls(`mode: SIMPLE, credentialName: a, cipherSuites: [AES128-SHA, ROT13, AES128-SHA]`),
			warnings: []string{
				`spec.servers[0].tls.cipherSuites[1]: is ignored: Envoy has no cipher "ROT13"`,
				`spec.servers[0].tls.cipherSuites[2]: repeats cipherSuites[0]: "AES128-SHA"`,
			},
		},
		{name: "hashes", spec: tls(`mode: SIMPLE, credentialName: a, verifyCertificateHash: ["` + hash + `", "` + colons(hash) + `"], verifyCertificateSpki: [n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=]`)},
		{
			name: "bad hashes",
			spec: tls(`mode: SIMPLE, credentialName: a, verifyCertificateHash: [abcd], verifyCertificateSpki: [abcd, "?"]`),
			violations: []string{
				`spec.servers[0].tls.verifyCertificateSpki[0]: must be a SHA-256 hash in base64, is "abcd"`,
				`spec.servers[0].tls.verifyCertificateSpki[1]: must be a SHA-256 hash in base64, is "?"`,
				`spec.servers[0].tls.verifyCertificateHash[0]: must be a SHA-256 hash in hexadecimal, is "abcd"`,
			},
		},
	})
}

// colons writes a hash as openssl does.
func colons(hash string) string {
	var pairs []string
	for i := 0; i < len(hash); i += 2 {
		pairs = append(pairs, hash[i:i+2])
	}
	return strings.Join(pairs, ":")
}
