// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
)

// service is a host name as a proxy sees it, with the merged services of one namespace. It is
// immutable.
type service struct {
	// host has the spelling of the first service. It is compared in lower case.
	host      registry.Hostname
	namespace string
	// of are the services in the order of precedence. There is at least one.
	of []*registry.Service
	// ports are the ports of the services in order, without duplicate numbers and without ports
	// that fail xdsbuild.CheckPort.
	ports []servicePort
	// byNumber maps port numbers to positions in ports. It is nil for few ports.
	byNumber map[uint32]int
}

// fewPorts is the maximum number of ports that are scanned without byNumber.
const fewPorts limit.Size = 16

type servicePort struct {
	*registry.Port
	of *registry.Service
}

// newService merges services with one host name and namespace.
func newService(of []*registry.Service) *service {
	s := &service{host: of[0].Hostname, namespace: of[0].Attributes.Namespace, of: of}
	for _, svc := range of {
		for _, p := range svc.Ports {
			// A port that cannot have a cluster is skipped, because no resource could be named
			// after it.
			if p != nil && xdsbuild.CheckPort(svc, p) == nil {
				s.addPort(servicePort{p, svc})
			}
		}
	}
	return s
}

// addPort adds a port to a new service, unless the number is taken.
func (s *service) addPort(p servicePort) {
	if _, taken := s.port(p.Number); taken {
		return
	}
	if s.ports = append(s.ports, p); len(s.ports) <= fewPorts.Get() {
		return
	}
	if s.byNumber == nil {
		s.byNumber = make(map[uint32]int)
		for i, p := range s.ports {
			s.byNumber[p.Number] = i
		}
	}
	s.byNumber[p.Number] = len(s.ports) - 1
}

// port returns the port with a number.
func (s *service) port(number uint32) (servicePort, bool) {
	if s == nil {
		return servicePort{}, false
	}
	if s.byNumber != nil {
		i, ok := s.byNumber[number]
		if !ok {
			return servicePort{}, false
		}
		return s.ports[i], true
	}
	i := slices.IndexFunc(s.ports, func(p servicePort) bool { return p.Number == number })
	if i < 0 {
		return servicePort{}, false
	}
	return s.ports[i], true
}

// position returns the position of a port among all ports of the service, starting at 1, even if
// the listener sees only some of them. It is 0 if there is no such port.
func (s *service) position(number uint32) int {
	n := 0
	for _, of := range s.of {
		for _, p := range of.Ports {
			if n++; p != nil && p.Number == number {
				return n
			}
		}
	}
	return 0
}

// headless reports whether the service can also be called by the names of its pods.
func (s *service) headless() bool { return slices.ContainsFunc(s.of, (*registry.Service).Headless) }

// onlyPort returns the number of the service's only port, even if a listener sees only some of
// several. It is 0 if the service has several ports.
func (s *service) onlyPort() uint32 {
	only := uint32(0)
	for _, of := range s.of {
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
func (s *service) withPorts(keep func(number uint32) bool) *service {
	out := s.withoutPorts()
	for _, p := range s.ports {
		if keep(p.Number) {
			out.addPort(p)
		}
	}
	if len(out.ports) == 0 {
		return nil
	}
	if len(out.ports) == len(s.ports) {
		return s
	}
	return out
}

func (s *service) withoutPorts() *service {
	return &service{host: s.host, namespace: s.namespace, of: s.of}
}

// chooseService returns the services that proxies of a namespace use for one host name, among the
// accepted ones: the services in their own namespace, or else in the namespace of the first
// service. Services must be in the order of precedence.
func chooseService(services []*registry.Service, namespace string, accept func(*registry.Service) bool) *service {
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
	return newService(chosen)
}
