// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

const (
	sourceDiscovery = "registry.ServiceDiscovery"
	sourcePackage   = "package registry"
)

func readChecks() []check {
	return []check{
		{
			Name: "Reads/Empty", Source: sourceDiscovery,
			Promise: "an empty registry has no services and knows no proxy",
			Run:     readsEmpty,
		},
		{
			Name: "Reads/Services", Source: sourceDiscovery,
			Promise: "Services returns all services in the order of CompareServices",
			Run:     readsServices,
		},
		{
			Name: "Reads/GetService", Source: sourceDiscovery,
			Promise: "GetService returns the service of a host name; if there are several, the oldest",
			Run:     readsGetService,
		},
		{
			Name: "Reads/GetService/Tie", Source: sourceDiscovery,
			Promise: "of several services of one age GetService returns the first by ComparePrecedence",
			Run:     readsGetServiceTie,
		},
		{
			Name: "Reads/InstancesByPort", Source: sourceDiscovery,
			Promise: "InstancesByPort returns the instances on a port, or on all ports for 0, sorted by CompareEndpoints",
			Run:     readsInstances,
		},
		{
			Name: "Reads/Update", Source: sourcePackage,
			Promise: "reads show the services and endpoints that there are",
			Run:     readsUpdate,
		},
		{
			Name: "Reads/Remove", Source: sourcePackage,
			Promise: "of a removed service nothing is left",
			Run:     readsRemove,
		},
		{
			Name: "Reads/Immutable", Source: sourcePackage,
			Promise: "what a registry has handed out does not change",
			Run:     readsImmutable,
		},
	}
}

func readsEmpty(s *suite) {
	s.catchUp()
	if got := s.reg.Services(); len(got) != 0 {
		s.Broken("Services() has %d services", len(got))
	}
	if got := s.reg.GetService("shop.example.com"); got != nil {
		s.Broken("GetService = %s", describe(got))
	}
	if got := s.reg.InstancesByPort(shop().service(), 0); len(got) != 0 {
		s.Broken("InstancesByPort of an unknown service has %d instances", len(got))
	}
	proxy := &registry.Proxy{Namespace: "retail", IPAddresses: []string{"10.1.1.1"}}
	if got := s.reg.GetProxyServiceInstances(proxy); len(got) != 0 {
		s.Broken("GetProxyServiceInstances has %d instances", len(got))
	}
	if got := s.reg.GetProxyWorkloadLabels(proxy); got != nil {
		s.Broken("GetProxyWorkloadLabels = %v, want nil: the proxy is not known", got)
	}
}

func readsServices(s *suite) {
	other := shop()
	other.namespace, other.addresses = "abroad", nil
	for _, f := range []fixture{shop(), bank(), other} {
		s.set(f)
	}
	s.expectServices(bank(), other, shop())
}

func readsGetService(s *suite) {
	younger, oldest := shop(), shop()
	oldest.namespace, oldest.age = "zoo", 60
	s.set(younger)
	s.set(bank())
	for _, f := range []fixture{younger, bank()} {
		if got := s.reg.GetService(f.hostname); describe(got) != describe(f.service()) {
			s.Broken("GetService(%s) = %s, want %s", f.hostname, describe(got), describe(f.service()))
		}
	}
	if got := s.reg.GetService("unknown.example.com"); got != nil {
		s.Broken("GetService of an unknown host = %s", describe(got))
	}
	s.set(oldest)
	if got := s.reg.GetService(oldest.hostname); describe(got) != describe(oldest.service()) {
		s.Broken("GetService = %s, want the oldest, %s", describe(got), describe(oldest.service()))
	}
	s.remove(oldest)
	if got := s.reg.GetService(oldest.hostname); describe(got) != describe(younger.service()) {
		s.Broken("GetService after the oldest was removed = %s, want %s", describe(got), describe(younger.service()))
	}
}

// readsGetServiceTie uses services whose namespaces, object names and times of registration each
// suggest another order.
func readsGetServiceTie(s *suite) {
	first, second, third := shop(), shop(), shop()
	first.namespace, first.object = "abroad", "c"
	second.namespace, second.object = "market", "b"
	third.namespace, third.object = "retail", "a"
	for _, f := range []fixture{third, first, second} {
		s.set(f)
	}
	for _, want := range []fixture{first, second, third} {
		if got := s.reg.GetService(want.hostname); describe(got) != describe(want.service()) {
			s.Broken("GetService = %s, want %s: the namespace decides", describe(got), describe(want.service()))
		}
		s.remove(want)
	}
}

func readsInstances(s *suite) {
	s.set(shop())
	s.set(bank())
	service := s.reg.GetService(bank().hostname)
	if service == nil {
		s.Stop("GetService(%s) = nil", bank().hostname)
	}
	for _, port := range []uint32{0, 80, 443, 81} {
		got := describeInstances(s.reg.InstancesByPort(service, port))
		if want := bank().describeEndpoints(port); !slices.Equal(got, want) {
			s.Broken("InstancesByPort(port %d) = %v, want %v", port, got, want)
		}
	}
	for _, i := range s.reg.InstancesByPort(service, 0) {
		if describe(i.Service) != describe(service) || i.ServicePort == nil || i.ServicePort.Name != i.Endpoint.ServicePortName {
			s.Broken("an instance of %s on port %v with an endpoint for %q", describe(i.Service), i.ServicePort, i.Endpoint.ServicePortName)
		}
	}
}

func readsUpdate(s *suite) {
	s.set(bank())
	s.set(shop())
	for _, f := range []fixture{
		shop().with("10.1.1.1", "10.1.1.2"), shop().with("10.1.1.3"), shop().with(),
		shop().onPorts(80, 81), shop().onPorts(82),
	} {
		s.set(f)
		s.expectServices(bank(), f)
	}
}

func readsRemove(s *suite) {
	s.set(shop())
	s.set(bank())
	s.remove(bank())
	s.expectServices(shop())
	if got := s.reg.GetService(bank().hostname); got != nil {
		s.Broken("GetService = %s", describe(got))
	}
	if got := s.reg.InstancesByPort(bank().service(), 0); len(got) != 0 {
		s.Broken("InstancesByPort has %v", describeInstances(got))
	}
	proxy := &registry.Proxy{IPAddresses: bank().addresses}
	if got := s.reg.GetProxyServiceInstances(proxy); len(got) != 0 {
		s.Broken("GetProxyServiceInstances has %v", describeInstances(got))
	}
	s.set(bank().with("10.2.2.9"))
	s.expectServices(bank().with("10.2.2.9"), shop())
}

// readsImmutable keeps results while the registry changes and compares them with copies made at
// once.
func readsImmutable(s *suite) {
	s.set(shop())
	s.set(bank())
	services := s.reg.Services()
	instances := s.reg.InstancesByPort(s.reg.GetService(bank().hostname), 0)
	proxies := s.reg.GetProxyServiceInstances(&registry.Proxy{IPAddresses: bank().addresses})
	before := snapshot(services, instances, proxies)
	s.set(bank().onPorts(80).with("10.2.2.3"))
	s.set(fixture{hostname: "aaa.example.com", namespace: "retail", ports: []uint32{80}})
	s.remove(shop())
	s.reg.Services()
	s.reg.InstancesByPort(s.reg.GetService(bank().hostname), 0)
	s.reg.GetProxyServiceInstances(&registry.Proxy{IPAddresses: bank().addresses})
	if after := snapshot(services, instances, proxies); !slices.Equal(before, after) {
		s.Broken("results became %v, were %v", after, before)
	}
}

func snapshot(services []*registry.Service, lists ...[]*registry.ServiceInstance) []string {
	var out []string
	for _, service := range services {
		out = append(out, describe(service))
	}
	for _, instances := range lists {
		for _, i := range instances {
			out = append(out, describe(i.Service)+" "+describeEndpoint(i.Endpoint))
		}
	}
	return out
}
