// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

func checkEgress(spec *field, c configstore.Config, listeners []*networking.IstioEgressListener) {
	var ports repetitions[uint32]
	var sockets repetitions[string]
	for at, listener := range elements(spec, "egress", listeners) {
		checkEnum(at.child("captureMode"), listener.CaptureMode)
		checkEgressBind(at, listener, at.index == len(listeners)-1)
		ports.refuse(at.child("port").child("number"), listener.GetPort().GetNumber(), at.index, "repeats spec.egress[%d].port.number: %d")
		if listener.GetPort().GetNumber() == 0 {
			sockets.refuse(at.child("bind"), listener.Bind, at.index, "repeats spec.egress[%d].bind: %q")
		}
		checkEgressHosts(at, listener.Hosts, c.Namespace)
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
			at.child("bind").warn("should not be set without a port")
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

// checkEgressHosts checks the hosts that a listener imports, "namespace/dnsName", and warns about
// redundant ones. own is the namespace that "." stands for.
func checkEgressHosts(at *field, hosts []string, own string) {
	if len(hosts) == 0 {
		at.child("hosts").refuse("must have at least one host")
	}
	imports := importsOf(hosts, own)
	superfluous := len(hosts) > 1 && !excludes(hosts)
	var seen repetitions[string]
	for i, host := range hosts {
		place := at.elem("hosts", i)
		checkSidecarHost(place, host)
		namespace, name := splitImport(host, own)
		if first, ok := seen.add(namespace+"/"+name, i); ok {
			place.warn("repeats hosts[%d]: %q", first, host)
		} else if wildcard, ok := imports[namespace].cover(name); ok {
			place.warn("is %q, which %q includes", host, namespace+"/"+wildcard)
		}
		if host == "*/*" && superfluous {
			place.warn("is */*, which makes the other hosts superfluous")
		}
	}
}

// importsOf returns the names that are imported from each namespace.
func importsOf(hosts []string, own string) map[string]*hostSet {
	names := map[string][]string{}
	for _, host := range hosts {
		namespace, name := splitImport(host, own)
		names[namespace] = append(names[namespace], name)
	}
	imports := make(map[string]*hostSet, len(names))
	for namespace, names := range names {
		imports[namespace] = newHostSet(names)
	}
	return imports
}

func splitImport(host, own string) (namespace, name string) {
	namespace, name, _ = strings.Cut(host, "/")
	if namespace == exportToOwn && own != "" {
		namespace = own
	}
	return namespace, name
}

// excludes reports whether a host is excluded, which gives "*/*" in the same list a meaning.
func excludes(hosts []string) bool {
	return slices.ContainsFunc(hosts, func(host string) bool { return strings.HasPrefix(host, exportToNone) })
}
