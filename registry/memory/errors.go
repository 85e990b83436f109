// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"

	"github.com/pilotkit/pilotkit/registry"
)

// The errors of this package, always wrapped with the verb and the service.
var (
	// ErrInvalid means that the service, endpoint or workload is invalid.
	ErrInvalid = errors.New("invalid")
	// ErrUnknownService means that the registry has no service of that host name and namespace.
	ErrUnknownService = errors.New("unknown service")
	// ErrUnknownEndpoint means that the service has no such endpoint.
	ErrUnknownEndpoint = errors.New("unknown endpoint")
	// ErrUnknownWorkload means that the registry has no workload with that key.
	ErrUnknownWorkload = errors.New("unknown workload")
)

// InvalidError names an invalid field of a service, or of its endpoints. It matches ErrInvalid.
type InvalidError struct {
	// Hostname and Namespace identify the service.
	Hostname  registry.Hostname
	Namespace string
	// Field is the path of the field in the service, such as "ports[1].number", or in the list of
	// its endpoints, such as "endpoints[3].addresses[0]"; empty if the service is missing.
	Field string
	// Reason explains why the field is invalid.
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

// maxPort is the largest port number.
const maxPort = 65535

// checkService returns an error if a service is invalid. It compares each port with all others,
// because services have few ports.
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

// checkPort returns the first invalid field of a port and the reason; an empty reason if the port
// is valid.
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
