// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// Definition is a service with all its endpoints, none of which is fine.
type Definition struct {
	Service   *registry.Service
	Endpoints []*registry.Endpoint
}

// Check returns nil if Set and Replace take the definition, else an *InvalidError, of
// the first field that they refuse: what SetService refuses, and an endpoint that is
// nil, has no address, has an address that is neither an IP address nor the path of a
// unix socket while no proxy resolves names for the service, has a port out of range,
// or serves no port of the service.
func (d Definition) Check() error {
	if d.Service == nil {
		return &InvalidError{Reason: "no service"}
	}
	if err := checkService(d.Service); err != nil {
		return err
	}
	for i, e := range d.Endpoints {
		if field, reason := checkEndpoint(d.Service, e); reason != "" {
			return invalid(d.Service, fmt.Sprintf("endpoints[%d]%s", i, field), reason)
		}
	}
	return nil
}

// checkEndpoint returns which field of an endpoint cannot be used and why, or no
// reason.
func checkEndpoint(s *registry.Service, e *registry.Endpoint) (field, reason string) {
	if e == nil {
		return "", "is nil"
	}
	if len(e.Addresses) == 0 {
		return ".addresses", "none"
	}
	for i, a := range e.Addresses {
		if reason := checkAddress(s, a); reason != "" {
			return fmt.Sprintf(".addresses[%d]", i), reason
		}
	}
	switch {
	case e.EndpointPort > maxPort, e.EndpointPort == 0 && !isSocket(e.Address()):
		return ".endpointPort", fmt.Sprintf("%d is not in 1–65535", e.EndpointPort)
	case e.ServicePort != 0 && s.Port(e.ServicePort) == nil:
		return ".servicePort", fmt.Sprintf("the service has no port %d", e.ServicePort)
	case e.ServicePort == 0 && s.PortByName(e.ServicePortName) == nil:
		return ".servicePortName", fmt.Sprintf("the service has no port %q", e.ServicePortName)
	}
	return "", ""
}

// checkAddress returns why an address cannot be used, or "". Only where proxies
// balance over what they are sent it has to be one that they can connect to.
func checkAddress(s *registry.Service, address string) string {
	if address == "" {
		return "is empty"
	}
	if s.Resolution != registry.ClientSideLB || isSocket(address) {
		return ""
	}
	if _, err := netip.ParseAddr(address); err != nil {
		return fmt.Sprintf("%q is not an IP address", address)
	}
	return ""
}

// isSocket reports whether an address is the path of a unix socket.
func isSocket(address string) bool {
	return strings.HasPrefix(address, "/") || strings.HasPrefix(address, "@")
}
