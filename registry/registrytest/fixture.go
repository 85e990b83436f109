// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

// fixture is a service with its endpoints, limited to the fields that the suite checks.
type fixture struct {
	hostname  registry.Hostname
	namespace string
	// age is subtracted from the creation time, in seconds.
	age int
	// object is the ObjectName; if it is empty, it is derived from the host name.
	object string
	// ports are the numbers of the service's ports.
	ports []uint32
	// addresses are the addresses of the endpoints. Each serves every port.
	addresses []string
}

func (f fixture) with(addresses ...string) fixture {
	f.addresses = addresses
	return f
}

func (f fixture) onPorts(ports ...uint32) fixture {
	f.ports = ports
	return f
}

// The services of most checks.
func shop() fixture {
	return fixture{hostname: "shop.example.com", namespace: "retail", ports: []uint32{80}, addresses: []string{"10.1.1.1"}}
}

func bank() fixture {
	return fixture{hostname: "bank.example.com", namespace: "money", ports: []uint32{80, 443}, addresses: []string{"10.2.2.2", "10.2.2.1"}}
}

func portName(number uint32) string { return fmt.Sprintf("http-%d", number) }

// targetPort is the port that endpoints listen on.
func targetPort(number uint32) uint32 { return number + 8000 }

func (f fixture) service() *registry.Service {
	s := &registry.Service{
		Hostname:       f.hostname,
		DefaultAddress: registry.UnspecifiedAddress,
		CreationTime:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(-time.Duration(f.age) * time.Second),
		Attributes: registry.ServiceAttributes{
			Name: string(f.hostname), Namespace: f.namespace,
			ObjectName: cmp.Or(f.object, strings.ReplaceAll(string(f.hostname), ".", "-")),
		},
	}
	for _, p := range f.ports {
		s.Ports = append(s.Ports, &registry.Port{Name: portName(p), Number: p, Protocol: registry.ProtocolHTTP})
	}
	return s
}

func (f fixture) endpoints() []*registry.Endpoint {
	var out []*registry.Endpoint
	for _, a := range f.addresses {
		for _, p := range f.ports {
			out = append(out, &registry.Endpoint{
				Addresses: []string{a}, EndpointPort: targetPort(p), ServicePort: p, ServicePortName: portName(p),
			})
		}
	}
	return out
}

// describe returns the checked fields of a service.
func describe(s *registry.Service) string {
	if s == nil {
		return "nil"
	}
	ports := make([]string, len(s.Ports))
	for i, p := range s.Ports {
		ports[i] = fmt.Sprintf("%s:%d", p.Name, p.Number)
	}
	return fmt.Sprintf("%s/%s [%s]", s.Attributes.Namespace, s.Hostname, strings.Join(ports, " "))
}

// describeEndpoints returns the expected endpoints on a port (0 for all ports), in order.
func (f fixture) describeEndpoints(port uint32) []string {
	endpoints := f.endpoints()
	slices.SortFunc(endpoints, registry.CompareEndpoints)
	out := []string{}
	for _, e := range endpoints {
		if port == 0 || e.ServicePort == port {
			out = append(out, describeEndpoint(e))
		}
	}
	return out
}

func describeEndpoint(e *registry.Endpoint) string {
	return fmt.Sprintf("%s:%d for %s", e.Address(), e.EndpointPort, e.ServicePortName)
}

func describeInstances(instances []*registry.ServiceInstance) []string {
	out := []string{}
	for _, i := range instances {
		out = append(out, describeEndpoint(i.Endpoint))
	}
	return out
}

// byKey sorts fixtures in the order of Services.
func byKey(fixtures []fixture) []fixture {
	out := slices.Clone(fixtures)
	slices.SortFunc(out, func(f, g fixture) int { return registry.CompareServices(f.service(), g.service()) })
	return out
}
