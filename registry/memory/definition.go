// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// Definition is a service with all its endpoints. There may be none.
type Definition struct {
	Service   *registry.Service
	Endpoints []*registry.Endpoint
}

// Check returns nil if Set and Replace accept the definition. Otherwise it returns an *InvalidError
// for the first invalid field. A field is invalid if SetService rejects it. An endpoint is invalid
// if it is nil, has no address, has a port out of range, or serves no port of the service. Its
// address must be an IP address or the path of a unix socket, unless proxies resolve names for the
// service.
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

// checkEndpoint returns the first invalid field of an endpoint and the reason; an empty reason if
// the endpoint is valid.
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

// checkAddress returns the reason why an address is invalid, or "". Proxies must be able to connect
// to the address itself only if they balance over the endpoints that they are sent.
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
