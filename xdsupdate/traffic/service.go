// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// service is a host name as a proxy sees it: the services of one namespace that
// have it, merged. It is immutable.
type service struct {
	// host is as the first service spells it; it is compared in lower case.
	host      registry.Hostname
	namespace string
	// of are the services, the first in precedence first; not empty.
	of []*registry.Service
	// ports are in the order of the services and their ports, each number once; without
	// those that do not pass envoy.CheckPort.
	ports []servicePort
	// byNumber has the positions of many ports; nil for few.
	byNumber map[uint32]int
}

// fewPorts are looked through one by one.
const fewPorts limit.Size = 16

// servicePort is a port, and the service that it is of.
type servicePort struct {
	*registry.Port
	of *registry.Service
}

// newService merges services of one host name and namespace.
func newService(of []*registry.Service) *service {
	s := &service{host: of[0].Hostname, namespace: of[0].Attributes.Namespace, of: of}
	for _, svc := range of {
		for _, p := range svc.Ports {
			// Without a cluster nothing can be named after a port.
			if p != nil && envoy.CheckPort(svc, p) == nil {
				s.addPort(servicePort{p, svc})
			}
		}
	}
	return s
}

// addPort adds a port to a service that is being made, unless the number is taken.
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

// port returns the port of a number.
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

// position returns which of the ports of the service a port is, from 1, whatever part of
// it a listener has; 0 if it has none of the number.
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

// headless reports whether the service is called by the names of its pods, too.
func (s *service) headless() bool { return slices.ContainsFunc(s.of, (*registry.Service).Headless) }

// onlyPort returns the number of the only port of the service, whatever part of it
// a listener has; 0 if it has several.
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

// withPorts returns the service with some of its ports only, or nil if it has none
// of them.
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

// chooseService returns which of the services of one host name proxies of a
// namespace use, of those that accept is true of: those of their own namespace, or
// else of the oldest. Services are in the order of precedence.
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
