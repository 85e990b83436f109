// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// sidecarRules are the rules of Istio 1.30 for a Sidecar.
func sidecarRules(spec *field, c configstore.Config, sidecar *networking.Sidecar) {
	checkWorkloadSelector(spec, sidecar.WorkloadSelector)
	if len(sidecar.Ingress) == 0 && len(sidecar.Egress) == 0 && sidecar.OutboundTrafficPolicy == nil && sidecar.InboundConnectionPool == nil {
		spec.refuse("must have one of ingress, egress, outboundTrafficPolicy, inboundConnectionPool")
	}
	checkConnectionPool(spec.child("inboundConnectionPool"), sidecar.InboundConnectionPool)
	var ports repetitions[uint32]
	for at, listener := range elements(spec, "ingress", sidecar.Ingress) {
		checkIngressListener(at, listener)
		ports.refuse(at.child("port").child("number"), listener.GetPort().GetNumber(), at.index, "repeats spec.ingress[%d].port.number: %d")
	}
	checkEgress(spec, c, sidecar.Egress)
	if policy := sidecar.OutboundTrafficPolicy; policy != nil {
		checkOutboundPolicy(spec.child("outboundTrafficPolicy"), policy)
	}
}

func checkIngressListener(at *field, listener *networking.IstioIngressListener) {
	if listener.Port == nil {
		at.child("port").refuse("is required")
	} else {
		checkPortNumber(at.child("port").child("number"), listener.Port.Number)
		checkSidecarPort(at.child("port"), listener.Port)
	}
	if listener.Bind != "" {
		checkIP(at.child("bind"), listener.Bind)
	}
	checkEnum(at.child("captureMode"), listener.CaptureMode)
	checkDefaultEndpoint(at.child("defaultEndpoint"), listener.DefaultEndpoint)
	port := parseProtocol(listener.GetPort().GetProtocol())
	if listener.Tls != nil {
		if !port.isTLS() {
			at.child("tls").refuse("must not be set for protocol %q, only for HTTPS and TLS", listener.GetPort().GetProtocol())
		}
		checkIngressTLS(at.child("tls"), listener.Tls)
	}
	checkConnectionPool(at.child("connectionPool"), listener.ConnectionPool)
	if listener.GetConnectionPool().GetHttp() != nil && !port.isHTTP() {
		at.child("connectionPool").child("http").warn("has no effect for protocol %q", listener.GetPort().GetProtocol())
	}
}

// checkSidecarPort checks all of a port but its number.
func checkSidecarPort(at *field, port *networking.SidecarPort) {
	if port.Name != "" {
		checkDNSLabel(at.child("name"), port.Name)
	}
	checkProtocol(at.child("protocol"), port.Protocol)
	if n := port.TargetPort; n != 0 { //nolint:staticcheck // Users still write the deprecated field.
		at.child("targetPort").refuse("must not be set, is %d", n)
	}
}

// checkDefaultEndpoint checks where an ingress listener sends its traffic: to a
// Unix socket, or to a port of the workload itself.
func checkDefaultEndpoint(at *field, endpoint string) {
	if endpoint == "" {
		return
	}
	if path, unix := strings.CutPrefix(endpoint, unixScheme); unix {
		checkUnixPath(at, path)
		return
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		at.refuse("must be host:port or unix://path, is %q", endpoint)
		return
	}
	if host != "" && !isOwnAddress(host) {
		at.refuse("must have 127.0.0.1, 0.0.0.0, [::1], [::] or nothing before the port, is %q", endpoint)
	}
	if number, err := strconv.ParseUint(port, 10, 32); err != nil || number < 1 || number > maxPort {
		at.refuse("must have a port of 1–65535, is %q", endpoint)
	}
}

// isOwnAddress reports whether s spells the loopback or the unspecified address of
// either IP family.
func isOwnAddress(s string) bool {
	address, err := netip.ParseAddr(s)
	return err == nil && (address.IsUnspecified() || address == netip.IPv6Loopback() || address == netip.AddrFrom4([4]byte{127, 0, 0, 1}))
}

func checkIngressTLS(at *field, tls *networking.ServerTLSSettings) {
	checkServerTLS(at, tls)
	if len(tls.SubjectAltNames) > 0 {
		at.child("subjectAltNames").refuse("must be empty in a Sidecar")
	}
	if tls.HttpsRedirect {
		at.child("httpsRedirect").refuse("must not be set in a Sidecar")
	}
	const inSidecar = "must not be set in a Sidecar, which reads certificates from files"
	checkUnset(at.child("credentialName"), tls.CredentialName, inSidecar)
	checkUnset(at.child("caCertCredentialName"), tls.CaCertCredentialName, inSidecar)
	if len(tls.CredentialNames) > 0 {
		at.child("credentialNames").refuse("%s", inSidecar)
	}
	if tls.Mode == networking.ServerTLSSettings_ISTIO_MUTUAL || tls.Mode == networking.ServerTLSSettings_AUTO_PASSTHROUGH {
		at.child("mode").refuse("must not be %s in a Sidecar", tls.Mode)
	}
}

func checkOutboundPolicy(at *field, policy *networking.OutboundTrafficPolicy) {
	checkEnum(at.child("mode"), policy.Mode)
	proxy := policy.EgressProxy
	if proxy == nil {
		return
	}
	to := at.child("egressProxy")
	if policy.Mode != networking.OutboundTrafficPolicy_ALLOW_ANY {
		to.refuse("must not be set for mode %s, only for ALLOW_ANY", policy.Mode)
	}
	checkDestination(to, proxy)
	if isWildcarded(proxy.Host) && proxy.Host != "*" {
		to.child("host").refuse("must not be a wildcard, is %q", proxy.Host)
	}
	if proxy.Port == nil {
		to.child("port").refuse("is required")
	}
}
