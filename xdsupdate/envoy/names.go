// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"net"
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// The type URLs of the resources.
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
// dials "xds:///HOST", it returns port 0, which means
// the default port of the service: its only port, or else its first gRPC port.
func ParseListenerName(name string) (port uint32, host registry.Hostname, ok bool) {
	h, number, err := net.SplitHostPort(name)
	if err != nil {
		return 0, registry.Hostname(name), name != "" && !strings.ContainsAny(name, ":[]|")
	}
	port, ok = parsePort(number)
	return port, registry.Hostname(h), ok && h != ""
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

const maxPort = 1<<16 - 1

// ParseSubsetClusterName is the inverse of SubsetClusterName.
func ParseSubsetClusterName(name string) (port uint32, subset string, host registry.Hostname, ok bool) {
	rest, ok := strings.CutPrefix(name, clusterPrefix)
	if !ok {
		return 0, "", "", false
	}
	return parseParts(rest, "|")
}

// SNIName returns "outbound_.PORT_.SUBSET_.HOST": the name of the same cluster in a form that is
// valid as a TLS server name.
func SNIName(port uint32, subset string, host registry.Hostname) string {
	return sniPrefix + strconv.FormatUint(uint64(port), 10) + sniSeparator + subset + sniSeparator + string(host)
}

// ParseSNIName is the inverse of SNIName.
func ParseSNIName(name string) (port uint32, subset string, host registry.Hostname, ok bool) {
	rest, ok := strings.CutPrefix(name, sniPrefix)
	if !ok {
		return 0, "", "", false
	}
	return parseParts(rest, sniSeparator)
}

const (
	sniPrefix    = "outbound_."
	sniSeparator = "_."
)

func parseParts(rest, separator string) (port uint32, subset string, host registry.Hostname, ok bool) {
	number, rest, ok := strings.Cut(rest, separator)
	if !ok {
		return 0, "", "", false
	}
	subset, name, ok := strings.Cut(rest, separator)
	if !ok || name == "" {
		return 0, "", "", false
	}
	port, ok = parsePort(number)
	return port, subset, registry.Hostname(name), ok
}
