// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// checkSidecarHost checks a host that a Sidecar imports, "namespace/dnsName". The
// namespace may be *, . or ~, and a ~ before it excludes the host.
func checkSidecarHost(at *field, value string) {
	namespace, host, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || host == "" {
		at.refuse("must be namespace/dnsName, is %q", value)
		return
	}
	selected := strings.TrimPrefix(namespace, exportToNone)
	switch {
	case namespace == exportToNone, selected == exportToAll, selected == exportToOwn:
	case !isDNSLabel(selected):
		at.refuse("must have *, ., ~ or a namespace before the slash, is %q", value)
	}
	checkQualifiedHost(at, host)
}

// checkGatewayHost checks a host that a Gateway exposes, "dnsName" or
// "namespace/dnsName". The namespace may be * or ., and ~ for generated Gateways.
func checkGatewayHost(at *field, value string, generated bool) {
	namespace, host, ok := strings.Cut(value, "/")
	switch {
	case !ok:
		namespace, host = exportToAll, value
	case namespace == "" || host == "":
		at.refuse("must be dnsName or namespace/dnsName, is %q", value)
		return
	}
	switch {
	case namespace == exportToAll, namespace == exportToOwn, namespace == exportToNone && generated:
	case !isDNSLabel(namespace):
		at.refuse("must have *, . or a namespace before the slash, is %q", value)
	}
	switch {
	case !isIP(host):
		checkQualifiedHost(at, host)
	case strings.Contains(host, ":"):
		at.refuse("must be a domain name or an IPv4 address, is %q", value)
	}
}

// checkQualifiedHost rejects strings that are not wildcard domains with at least one dot.
func checkQualifiedHost(at *field, host string) {
	switch problem := domainProblem(host, true); {
	case host == "*":
	case problem != "":
		at.refuse("%s", excerpt.Phrase(problem))
	case isPartialWildcard(host):
		at.refuse("must have a wildcard as a whole label, is %q", host)
	case !strings.Contains(host, "."):
		at.refuse("must be a full domain name, not a short one, is %q", host)
	}
}
