// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pilotkit/pilotkit/registry"
)

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
