// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"net"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// sidecarRules are the rules of Istio 1.30 for a Sidecar.
func sidecarRules(spec *field, _ configstore.Config, sidecar *networking.Sidecar) {
	checkWorkloadSelector(spec, sidecar.WorkloadSelector)
	if len(sidecar.Ingress) == 0 && len(sidecar.Egress) == 0 && sidecar.OutboundTrafficPolicy == nil && sidecar.InboundConnectionPool == nil {
		spec.refuse("must have one of ingress, egress, outboundTrafficPolicy, inboundConnectionPool")
	}
	checkConnectionPool(spec.child("inboundConnectionPool"), sidecar.InboundConnectionPool)
	var ports repetitions[uint32]
	for i, listener := range sidecar.Ingress {
		at := spec.elem("ingress", i)
		if listener == nil {
			at.refuseNull()
			continue
		}
		checkIngressListener(at, listener)
		if number := listener.GetPort().GetNumber(); number != 0 {
			if first, ok := ports.add(number, i); ok {
				at.child("port").child("number").refuse("repeats spec.ingress[%d].port.number: %d", first, number)
			}
		}
	}
	checkEgress(spec, sidecar.Egress)
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
	switch host {
	case "", "127.0.0.1", "0.0.0.0", "::1", "::":
	default:
		at.refuse("must have 127.0.0.1, 0.0.0.0, [::1], [::] or nothing before the port, is %q", endpoint)
	}
	if number, err := strconv.ParseUint(port, 10, 32); err != nil || number < 1 || number > maxPort {
		at.refuse("must have a port of 1–65535, is %q", endpoint)
	}
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

func checkEgress(spec *field, listeners []*networking.IstioEgressListener) {
	var ports repetitions[uint32]
	var sockets repetitions[string]
	for i, listener := range listeners {
		at := spec.elem("egress", i)
		if listener == nil {
			at.refuseNull()
			continue
		}
		checkEnum(at.child("captureMode"), listener.CaptureMode)
		checkEgressBind(at, listener, i == len(listeners)-1)
		switch number := listener.GetPort().GetNumber(); {
		case number != 0:
			if first, ok := ports.add(number, i); ok {
				at.child("port").child("number").refuse("repeats spec.egress[%d].port.number: %d", first, number)
			}
		case listener.Bind != "":
			if first, ok := sockets.add(listener.Bind, i); ok {
				at.child("bind").refuse("repeats spec.egress[%d].bind: %q", first, listener.Bind)
			}
		}
		checkEgressHosts(at, listener.Hosts)
	}
}

func checkEgressBind(at *field, listener *networking.IstioEgressListener, last bool) {
	path, unix := strings.CutPrefix(listener.Bind, unixScheme)
	switch port := listener.Port; {
	case port == nil:
		if !last {
			at.child("port").refuse("is required for all listeners but the last")
		}
		if listener.Bind != "" {
			at.child("port").refuse("is required beside bind")
		}
		return
	case port.Number == 0 && !unix:
		at.child("bind").refuse("must be a unix domain socket for port 0, is %q", listener.Bind)
	case port.Number == 0:
		checkUnixPath(at.child("bind"), path)
		if listener.CaptureMode == networking.CaptureMode_IPTABLES {
			at.child("captureMode").refuse("must be DEFAULT or NONE for a unix domain socket, is IPTABLES")
		}
	default:
		checkPortNumber(at.child("port").child("number"), port.Number)
		if listener.Bind != "" {
			checkIP(at.child("bind"), listener.Bind)
		}
	}
	checkSidecarPort(at.child("port"), listener.Port)
}

func checkEgressHosts(at *field, hosts []string) {
	if len(hosts) == 0 {
		at.child("hosts").refuse("must have at least one host")
	}
	var seen repetitions[string]
	for i, host := range hosts {
		checkSidecarHost(at.elem("hosts", i), host)
		if first, ok := seen.add(host, i); ok {
			at.elem("hosts", i).warn("repeats hosts[%d]: %q", first, host)
		}
		if host == "*/*" && len(hosts) > 1 && !excludes(hosts) {
			at.elem("hosts", i).warn("is */*, which makes the other hosts superfluous")
		}
	}
}

// excludes reports whether a host is excluded: then "*/*" beside it makes sense.
func excludes(hosts []string) bool {
	for _, host := range hosts {
		if len(host) > 1 && strings.HasPrefix(host, exportToNone) && host[1] != '/' {
			return true
		}
	}
	return false
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
	checkFQDN(to.child("host"), proxy.Host)
	if proxy.Port == nil {
		to.child("port").refuse("is required")
	} else {
		checkPortNumber(to.child("port").child("number"), proxy.Port.Number)
	}
}
