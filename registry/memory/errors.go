// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"

	"github.com/pilotkit/pilotkit/registry"
)

// The errors of this package, always wrapped with the verb and the service.
var (
	// ErrInvalid: the service, endpoint or workload cannot be used as it is.
	ErrInvalid = errors.New("invalid")
	// ErrUnknownService: the registry has no service of that host name and
	// namespace.
	ErrUnknownService = errors.New("unknown service")
	// ErrUnknownEndpoint: the service has no such endpoint.
	ErrUnknownEndpoint = errors.New("unknown endpoint")
	// ErrUnknownWorkload: the registry has no workload of that key.
	ErrUnknownWorkload = errors.New("unknown workload")
)

func invalid(verb string, k serviceKey, reason string) error {
	return fmt.Errorf("%s %s: %w: %s", verb, k, ErrInvalid, reason)
}

// checkService returns why a service cannot be kept, or "".
func checkService(s *registry.Service) string {
	if s.Hostname == "" {
		return "no host name"
	}
	names, numbers := map[string]bool{}, map[uint32]bool{}
	for _, p := range s.Ports {
		switch {
		case p == nil:
			return "a port is nil"
		case p.Number < 1 || p.Number > 65535:
			return fmt.Sprintf("port %d is not in 1–65535", p.Number)
		case p.Name == "" && len(s.Ports) > 1:
			return fmt.Sprintf("port %d has no name, which is for single ports", p.Number)
		case names[p.Name]:
			return fmt.Sprintf("two ports have the name %q", p.Name)
		case numbers[p.Number]:
			return fmt.Sprintf("two ports have the number %d", p.Number)
		}
		names[p.Name], numbers[p.Number] = true, true
	}
	return ""
}
