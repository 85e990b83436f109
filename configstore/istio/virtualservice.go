// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// virtualServiceRules are the rules of Istio 1.30 for a VirtualService. One
// without hosts is a delegate, whose HTTP routes others include.
func virtualServiceRules(spec *field, c configstore.Config, service *networking.VirtualService) {
	scope := scopeOf(c, service)
	if scope.delegate {
		checkEmptyInDelegate(spec.child("gateways"), len(service.Gateways))
		checkEmptyInDelegate(spec.child("tls"), len(service.Tls))
		checkEmptyInDelegate(spec.child("tcp"), len(service.Tcp))
	}
	checkServiceHosts(spec, service, scope)
	checkGatewayNames(spec, service.Gateways, scope.generated)
	if len(service.Http) == 0 && len(service.Tls) == 0 && len(service.Tcp) == 0 {
		spec.refuse("must have one of http, tls, tcp")
	}
	for at, route := range elements(spec, "http", service.Http) {
		checkHTTPRoute(at, route, scope)
	}
	hosts := newHostSet(service.Hosts)
	for at, route := range elements(spec, "tls", service.Tls) {
		checkTLSRoute(at, route, hosts, scope)
	}
	for at, route := range elements(spec, "tcp", service.Tcp) {
		checkTCPRoute(at, route, scope)
	}
	checkExportTo(spec, c, service.ExportTo, false)
	checkPrograms(spec)
	warnUnreachable(spec, service)
	if !scope.generated {
		warnUnmatchedPreflights(spec, service.Http)
	}
}

func checkEmptyInDelegate(at *field, count int) {
	if count > 0 {
		at.refuse("must be empty in a delegate, which has no hosts")
	}
}

func checkServiceHosts(spec *field, service *networking.VirtualService, scope routeScope) {
	hosts := newHostSet(service.Hosts)
	var seen repetitions[string]
	for i, host := range service.Hosts {
		at := spec.elem("hosts", i)
		switch {
		case host == "*" && !scope.gateways:
			at.refuse("must not be * for the gateway mesh")
		case isIP(host) && strings.Contains(host, "%"):
			at.refuse("must not have a zone, which no authority of HTTP has, is %q", host)
		case isIP(host), scope.tls && scope.gateways && isClusterServerName(host):
		default:
			checkWildcardDomain(at, host)
		}
		if first, ok := seen.add(hostKey(host), i); ok {
			at.refuse("repeats spec.hosts[%d]: %q", first, host)
		} else if wildcard, ok := hosts.cover(host); ok {
			at.refuse("is %q, which %q includes", host, wildcard)
		}
	}
}

// checkGatewayNames checks a list of "mesh", "name" and "namespace/name". The
// names of generated Gateways need not be DNS labels.
func checkGatewayNames(at *field, gateways []string, generated bool) {
	for i, gateway := range gateways {
		place := at.elem("gateways", i)
		namespace, name, ok := strings.Cut(gateway, "/")
		switch {
		case gateway == "":
			place.refuse("must not be empty")
		case ok && !isDNSLabel(namespace):
			place.refuse("must have a namespace before the slash, is %q", gateway)
		case ok && name == "":
			place.refuse("must have a name after the slash, is %q", gateway)
		case ok:
			if !generated && !isDNSLabel(name) {
				place.refuse("must have a DNS label after the slash (%s), is %q", dnsLabelRule, gateway)
			}
		case !isFQDN(gateway):
			place.refuse("must be a gateway's name or namespace/name, is %q", gateway)
		case strings.Contains(gateway, "."):
			place.warn("is %q; the form namespace/name replaces domain names", gateway)
		}
	}
}
