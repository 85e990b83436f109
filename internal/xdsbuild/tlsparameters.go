// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"fmt"
	"slices"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// serverParameters returns the versions, ciphers and curves of a server: its own, or else the
// mesh's; nil if neither sets any.
func serverParameters(tls *networking.ServerTLSSettings, mesh *meshconfig.MeshConfig_TLSConfig) *tlsv3.TlsParameters {
	p := &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsVersion(tls.GetMinProtocolVersion()),
		TlsMaximumProtocolVersion: tlsVersion(tls.GetMaxProtocolVersion()),
		CipherSuites:              cipherSuites(tls.GetCipherSuites()),
		EcdhCurves:                mesh.GetEcdhCurves(),
	}
	if p.TlsMinimumProtocolVersion == tlsv3.TlsParameters_TLS_AUTO {
		p.TlsMinimumProtocolVersion = tlsVersion(mesh.GetMinProtocolVersion())
	}
	if most := p.GetTlsMaximumProtocolVersion(); most != tlsv3.TlsParameters_TLS_AUTO && most < p.GetTlsMinimumProtocolVersion() {
		// The mesh's minimum is above the server's maximum. Envoy rejects a listener with an empty
		// range.
		p.TlsMinimumProtocolVersion = most
	}
	if len(p.CipherSuites) == 0 {
		p.CipherSuites = cipherSuites(mesh.GetCipherSuites())
	}
	if p.GetTlsMinimumProtocolVersion() == tlsv3.TlsParameters_TLS_AUTO &&
		p.GetTlsMaximumProtocolVersion() == tlsv3.TlsParameters_TLS_AUTO && len(p.CipherSuites)+len(p.EcdhCurves) == 0 {
		return nil
	}
	return p
}

// tlsVersion converts a version by its name, TLSV1_2 or TLSv1_2. Unknown ones are left to Envoy (TLS_AUTO).
func tlsVersion(version fmt.Stringer) tlsv3.TlsParameters_TlsProtocol {
	name := strings.Replace(version.String(), "V", "v", 1)
	return tlsv3.TlsParameters_TlsProtocol(tlsv3.TlsParameters_TlsProtocol_value[name])
}

// cipherSuites returns the cipher suites that Envoy supports, in their order without duplicates,
// because Envoy rejects a whole listener or cluster with an unknown one. A group of equal
// preference, "[A|B]", stays if all its members are supported.
func cipherSuites(suites []string) []string {
	var out []string
	for _, s := range suites {
		if knownSuite(s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func knownSuite(suite string) bool {
	if inner, ok := strings.CutPrefix(suite, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		return ok && !slices.ContainsFunc(strings.Split(inner, "|"), func(s string) bool {
			return s == "ALL" || strings.HasPrefix(s, "[") || !knownSuite(s)
		})
	}
	switch suite {
	case "ALL",
		"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
		"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
		"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
		"ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA",
		"AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA":
		return true
	default:
		return false
	}
}
