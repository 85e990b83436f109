// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pilotkit/pilotkit/registry"
)

// The type URLs of the resources that this package builds.
const (
	ClusterType        = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	LoadAssignmentType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerType       = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteType          = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// clusterPrefix is the prefix of the names of all outbound clusters. The field between the second
// and the third bar is a subset; it is empty for the service itself.
const clusterPrefix = "outbound|"

// ClusterName returns "outbound|PORT||HOST".
func ClusterName(port uint32, host registry.Hostname) string {
	return clusterPrefix + strconv.FormatUint(uint64(port), 10) + "||" + string(host)
}

// SubsetClusterName returns "outbound|PORT|SUBSET|HOST". With an empty subset it equals
// ClusterName.
func SubsetClusterName(port uint32, subset string, host registry.Hostname) string {
	return clusterPrefix + strconv.FormatUint(uint64(port), 10) + "|" + subset + "|" + string(host)
}

// ParseClusterName is the inverse of ClusterName. It returns false for names of other forms,
// including names with a subset.
func ParseClusterName(name string) (port uint32, host registry.Hostname, ok bool) {
	rest, ok := strings.CutPrefix(name, clusterPrefix)
	if !ok {
		return 0, "", false
	}
	number, h, ok := strings.Cut(rest, "||")
	if !ok || h == "" {
		return 0, "", false
	}
	port, ok = parsePort(number)
	return port, registry.Hostname(h), ok
}

// ListenerName returns "HOST:PORT". A client that dials "xds:///HOST:PORT" subscribes to the
// listener of that name.
func ListenerName(port uint32, host registry.Hostname) string {
	return net.JoinHostPort(string(host), strconv.FormatUint(uint64(port), 10))
}

// ParseListenerName is the inverse of ListenerName. For a name without a port, from a client that
// dials "xds:///HOST", it returns port 0, which means DefaultPort.
func ParseListenerName(name string) (port uint32, host registry.Hostname, ok bool) {
	h, number, err := net.SplitHostPort(name)
	if err != nil {
		return 0, registry.Hostname(name), name != "" && !strings.ContainsAny(name, ":[]|")
	}
	port, ok = parsePort(number)
	return port, registry.Hostname(h), ok && h != ""
}

// DefaultPort returns the port for clients that name only the service: its only port, or else its
// first gRPC port, or nil.
func DefaultPort(svc *registry.Service) *registry.Port {
	if len(svc.Ports) == 1 {
		return svc.Ports[0]
	}
	for _, p := range svc.Ports {
		if p != nil && p.Protocol == registry.ProtocolGRPC {
			return p
		}
	}
	return nil
}

// HTTPRouteName returns the name of the route configuration of all HTTP services on a port: its
// number.
func HTTPRouteName(port uint32) string { return strconv.FormatUint(uint64(port), 10) }

// ParseHTTPRouteName is the inverse of HTTPRouteName.
func ParseHTTPRouteName(name string) (port uint32, ok bool) { return parsePort(name) }

// parsePort accepts only the output of FormatUint, so that no two names mean the same resource.
func parsePort(s string) (uint32, bool) {
	if s == "" || len(s) > 5 || s[0] == '0' {
		return 0, false
	}
	n := uint32(0)
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint32(c-'0')
	}
	return n, n <= maxPort
}

// CheckPort returns the reason why a port of a service can never have a cluster: the host or the
// port cannot be part of a resource name, or the target port is invalid. It returns nil otherwise,
// even if the resolution has no cluster. The port must not be nil.
func CheckPort(svc *registry.Service, port *registry.Port) error {
	target := svc.Attributes.PassthroughTargetPorts[port.Number]
	switch {
	case port.Number == 0 || port.Number > maxPort:
		return fmt.Errorf("port %d: not from 1 to %d", port.Number, maxPort)
	case !usable(svc.Hostname, port):
		return fmt.Errorf("host name %q: empty, not UTF-8, or with a space or a bar", svc.Hostname)
	case svc.Resolution == registry.Passthrough && target > maxPort:
		return fmt.Errorf("port %d: target port %d is more than %d", port.Number, target, maxPort)
	default:
		return nil
	}
}

// usable reports whether a resource can be named after the port of the service. Registries validate
// their input; invalid names that pass must not become a resource that clients reject or that
// cannot be encoded.
func usable(host registry.Hostname, port *registry.Port) bool {
	if host == "" || port == nil || port.Number == 0 || port.Number > maxPort || !utf8.ValidString(string(host)) {
		return false
	}
	return !strings.ContainsFunc(string(host), unnameable)
}

// unnameable reports whether a rune cannot be part of a host or subset in a name.
func unnameable(r rune) bool { return r <= ' ' || r == 0x7f || r == '|' || r == utf8.RuneError }

const maxPort = 1<<16 - 1
