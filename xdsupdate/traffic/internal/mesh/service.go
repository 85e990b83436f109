// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
)

// Service is a host name as a proxy sees it, with the merged services of one namespace. It is
// immutable.
type Service struct {
	// Host has the spelling of the first service. It is compared in lower case.
	Host      registry.Hostname
	Namespace string
	// Of are the services in the order of precedence. There is at least one.
	Of []*registry.Service
	// Ports are the ports of the services in order, without duplicate numbers and without ports
	// that fail xdsbuild.CheckPort.
	Ports []ServicePort
	// byNumber maps port numbers to positions in ports. It is nil for few ports.
	byNumber map[uint32]int
}

// fewPorts is the maximum number of ports that are scanned without byNumber.
const fewPorts limit.Size = 16

// ServicePort is a port with the service that it belongs to.
type ServicePort struct {
	*registry.Port
	Of *registry.Service
}

// NewService merges services with one host name and namespace.
func NewService(of []*registry.Service) *Service {
	s := &Service{Host: of[0].Hostname, Namespace: of[0].Attributes.Namespace, Of: of}
	for _, svc := range of {
		for _, p := range svc.Ports {
			// A port that cannot have a cluster is skipped, because no resource could be named
			// after it.
			if p != nil && xdsbuild.CheckPort(svc, p) == nil {
				s.addPort(ServicePort{p, svc})
			}
		}
	}
	return s
}

// addPort adds a port to a new service, unless the number is taken.
func (s *Service) addPort(p ServicePort) {
	if _, taken := s.Port(p.Number); taken {
		return
	}
	if s.Ports = append(s.Ports, p); len(s.Ports) <= fewPorts.Get() {
		return
	}
	if s.byNumber == nil {
		s.byNumber = make(map[uint32]int)
		for i, p := range s.Ports {
			s.byNumber[p.Number] = i
		}
	}
	s.byNumber[p.Number] = len(s.Ports) - 1
}

// Port returns the port with a number.
func (s *Service) Port(number uint32) (ServicePort, bool) {
	if s == nil {
		return ServicePort{}, false
	}
	if s.byNumber != nil {
		i, ok := s.byNumber[number]
		if !ok {
			return ServicePort{}, false
		}
		return s.Ports[i], true
	}
	i := slices.IndexFunc(s.Ports, func(p ServicePort) bool { return p.Number == number })
	if i < 0 {
		return ServicePort{}, false
	}
	return s.Ports[i], true
}

// Position returns the position of a port among all ports of the service, starting at 1, even if
// the listener sees only some of them. It is 0 if there is no such port.
func (s *Service) Position(number uint32) int {
	n := 0
	for _, of := range s.Of {
		for _, p := range of.Ports {
			if n++; p != nil && p.Number == number {
				return n
			}
		}
	}
	return 0
}

// Headless reports whether the service can also be called by the names of its pods.
func (s *Service) Headless() bool { return slices.ContainsFunc(s.Of, (*registry.Service).Headless) }

// OnlyPort returns the number of the service's only port, even if a listener sees only some of
// several. It is 0 if the service has several ports.
func (s *Service) OnlyPort() uint32 {
	only := uint32(0)
	for _, of := range s.Of {
		for _, p := range of.Ports {
			if p != nil && p.Number != only {
				if only != 0 {
					return 0
				}
				only = p.Number
			}
		}
	}
	return only
}

// withPorts returns the service restricted to some ports, or nil if no port is left.
func (s *Service) withPorts(keep func(number uint32) bool) *Service {
	out := s.withoutPorts()
	for _, p := range s.Ports {
		if keep(p.Number) {
			out.addPort(p)
		}
	}
	if len(out.Ports) == 0 {
		return nil
	}
	if len(out.Ports) == len(s.Ports) {
		return s
	}
	return out
}

func (s *Service) withoutPorts() *Service {
	return &Service{Host: s.Host, Namespace: s.Namespace, Of: s.Of}
}

// ChooseService returns the services that proxies of a namespace use for one host name, among the
// accepted ones: the services in their own namespace, or else in the namespace of the first
// service. Services must be in the order of precedence.
func ChooseService(services []*registry.Service, namespace string, accept func(*registry.Service) bool) *Service {
	var chosen []*registry.Service
	for _, s := range services {
		if !accept(s) {
			continue
		}
		switch {
		case len(chosen) == 0 || s.Attributes.Namespace == chosen[0].Attributes.Namespace:
			chosen = append(chosen, s)
		case s.Attributes.Namespace == namespace && chosen[0].Attributes.Namespace != namespace:
			chosen = []*registry.Service{s}
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	return NewService(chosen)
}
