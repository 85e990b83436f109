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

// InvalidError says which field of a service, or of its endpoints, cannot be used. It
// matches ErrInvalid.
type InvalidError struct {
	// Hostname and Namespace are those of the service.
	Hostname  registry.Hostname
	Namespace string
	// Field is the path of the field in the service, such as "ports[1].number", or in
	// the list of its endpoints, such as "endpoints[3].addresses[0]"; empty if there is
	// no service.
	Field string
	// Reason says what is wrong with the field.
	Reason string
}

// Error returns "service namespace/hostname: invalid: field: reason".
func (e *InvalidError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", ErrInvalid, e.Reason)
	}
	return fmt.Sprintf("%s: %s: %s: %s", serviceKey{e.Hostname, e.Namespace}, ErrInvalid, e.Field, e.Reason)
}

// Unwrap returns ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

func invalid(s *registry.Service, field, reason string) error {
	return &InvalidError{Hostname: s.Hostname, Namespace: s.Attributes.Namespace, Field: field, Reason: reason}
}

// maxPort is the largest number of a port.
const maxPort = 65535

// checkService returns why a service cannot be kept, or nil. There are few ports, so
// that each is compared with all others.
func checkService(s *registry.Service) error {
	if s.Hostname == "" {
		return invalid(s, "hostname", "is empty")
	}
	for i := range s.Ports {
		if field, reason := checkPort(s.Ports, i); reason != "" {
			return invalid(s, fmt.Sprintf("ports[%d]%s", i, field), reason)
		}
	}
	return nil
}

// checkPort returns which field of a port cannot be used and why, or no reason.
func checkPort(ports []*registry.Port, i int) (field, reason string) {
	p := ports[i]
	switch {
	case p == nil:
		return "", "is nil"
	case p.Number < 1 || p.Number > maxPort:
		return ".number", fmt.Sprintf("%d is not in 1–65535", p.Number)
	case p.Name == "" && len(ports) > 1:
		return ".name", "is empty, which is for single ports"
	}
	for _, other := range ports[:i] {
		switch {
		case other.Name == p.Name:
			return ".name", fmt.Sprintf("%q is the name of another port, too", p.Name)
		case other.Number == p.Number:
			return ".number", fmt.Sprintf("%d is the number of another port, too", p.Number)
		}
	}
	return "", ""
}
