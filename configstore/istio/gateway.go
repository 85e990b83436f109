// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/ipaddr"
)

// gatewayRules are the rules of Istio 1.30 for a Gateway.
func gatewayRules(spec *field, c configstore.Config, gateway *networking.Gateway) {
	// A Gateway that stands for one of the Gateway API may use names that are
	// closed to users.
	generated := c.Annotations[gatewaySemanticsAnnotation] == gatewaySemantics
	if !generated && !isDNSLabel(c.Name) {
		spec.parent.child("metadata").child("name").refuse("must be a DNS label (%s), is %q", dnsLabelRule, c.Name)
	}
	warnUnselective(spec, gateway.Selector)
	if len(gateway.Servers) == 0 {
		spec.child("servers").refuse("must have at least one server")
	}
	var names, portNames repetitions[string]
	for at, server := range elements(spec, "servers", gateway.Servers) {
		checkServer(at, server, generated)
		names.refuse(at.child("name"), server.Name, at.index, "repeats spec.servers[%d].name: %q")
		portNames.refuse(at.child("port").child("name"), server.GetPort().GetName(), at.index, "repeats spec.servers[%d].port.name: %q")
	}
}

// warnUnselective warns of a selector that no workload can meet. Istio 1.30 takes
// any for a Gateway.
func warnUnselective(spec *field, selector map[string]string) {
	for at, value := range entries(spec, "selector", selector) {
		if !isLabel(at.key, value) {
			at.warn("selects no workload: no label has this key and value, %q", value)
		}
	}
}

func checkServer(at *field, server *networking.Server, generated bool) {
	if len(server.Hosts) == 0 {
		at.child("hosts").refuse("must have at least one host")
	}
	var hosts repetitions[string]
	for i, host := range server.Hosts {
		checkGatewayHost(at.elem("hosts", i), host, generated)
		if first, ok := hosts.add(hostKey(host), i); ok {
			at.elem("hosts", i).warn("repeats hosts[%d]: %q", first, host)
		}
	}
	checkServerBind(at, server)
	if server.DefaultEndpoint != "" {
		at.child("defaultEndpoint").warn("has no effect: Istio does not implement it")
	}
	port := parseProtocol(server.GetPort().GetProtocol())
	if server.Tls == nil {
		if port.isTLS() {
			at.child("tls").refuse("is required for protocol %s", server.Port.Protocol)
		}
		return
	}
	checkServerTLS(at.child("tls"), server.Tls)
	switch {
	case port.isTLS():
		if server.Tls.HttpsRedirect {
			at.child("tls").child("httpsRedirect").warn("has no effect for protocol %s, only for HTTP", server.Port.Protocol)
		}
	case port.isHTTP():
		checkPlainServer(at.child("tls"), server)
	default:
		at.child("tls").refuse("must not be set for protocol %q, only for HTTPS and TLS", server.GetPort().GetProtocol())
	}
}

// checkPlainServer checks the TLS settings of a server without TLS, which may ask
// for a redirect only.
func checkPlainServer(at *field, server *networking.Server) {
	const plain = "must not be set for a protocol without TLS"
	if terminatesTLS(server.Tls) {
		at.child("mode").refuse("must not be %s for protocol %s, only for HTTPS and TLS", server.Tls.Mode, server.Port.Protocol)
		return
	}
	checkUnset(at.child("serverCertificate"), server.Tls.ServerCertificate, plain)
	checkUnset(at.child("privateKey"), server.Tls.PrivateKey, plain)
	checkUnset(at.child("caCertificates"), server.Tls.CaCertificates, plain)
}

func checkServerBind(at *field, server *networking.Server) {
	path, unix := strings.CutPrefix(server.Bind, unixScheme)
	switch {
	case unix:
		checkUnixPath(at.child("bind"), path)
		if strings.HasPrefix(path, "/") {
			at.child("bind").warn("is a file, which Envoy deletes: nothing listens there unless the host allows its directory")
		}
	case server.Bind != "":
		checkIP(at.child("bind"), server.Bind)
		if err := ipaddr.CheckBind(server.Bind); err != nil && isIP(server.Bind) {
			at.child("bind").refuse("must be an address to listen on, is %q: %v", server.Bind, err)
		}
	}
	port := at.child("port")
	if server.Port == nil {
		port.refuse("is required")
		return
	}
	// The name is a label for people, not a DNS label: Knative has slashes in it.
	checkSet(port.child("name"), server.Port.Name, "is required")
	switch {
	case !unix:
		checkPortNumber(port.child("number"), server.Port.Number)
	case server.Port.Number != 0:
		port.child("number").refuse("must be 0 for a unix domain socket, is %d", server.Port.Number)
	}
	if server.Port.Protocol == "" {
		port.child("protocol").refuse("is required")
	}
	checkProtocol(port.child("protocol"), server.Port.Protocol)
	if n := server.Port.TargetPort; n != 0 { //nolint:staticcheck // Users still write the deprecated field.
		port.child("targetPort").refuse("must not be set, is %d", n)
	}
}
