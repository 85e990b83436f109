// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

func proxyChecks() []check {
	return []check{
		{
			Name: "Proxy/Instances", Source: sourceDiscovery,
			Promise: "GetProxyServiceInstances returns the instances that have one of the proxy's addresses",
			Run:     proxyInstances,
		},
		{
			Name: "Proxy/Namespace", Source: sourceDiscovery,
			Promise: "GetProxyServiceInstances returns only those of the proxy's own namespace if that is known",
			Run:     proxyNamespace,
		},
		{
			Name: "Proxy/Follows", Source: sourceDiscovery,
			Promise: "GetProxyServiceInstances follows the endpoints",
			Run:     proxyFollows,
		},
	}
}

func (s *suite) expectProxy(namespace string, addresses []string, want ...string) {
	s.Helper()
	got := []string{}
	for _, i := range s.reg.GetProxyServiceInstances(&registry.Proxy{Namespace: namespace, IPAddresses: addresses}) {
		got = append(got, i.Service.Key()+" "+describeEndpoint(i.Endpoint))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Broken("GetProxyServiceInstances(%q, %v) = %v, want %v", namespace, addresses, got, want)
	}
}

const (
	shopInstance    = "retail/shop.example.com 10.1.1.1:8080 for http-80"
	bankInstance80  = "money/bank.example.com 10.2.2.1:8080 for http-80"
	bankInstance443 = "money/bank.example.com 10.2.2.1:8443 for http-443"
)

func proxyInstances(s *suite) {
	s.set(shop())
	s.set(bank())
	s.expectProxy("", []string{"10.1.1.1"}, shopInstance)
	s.expectProxy("money", []string{"10.2.2.1"}, bankInstance80, bankInstance443)
	s.expectProxy("", []string{"10.1.1.1", "10.2.2.1", "10.1.1.1"}, shopInstance, bankInstance80, bankInstance443)
	s.expectProxy("", []string{"10.9.9.9"})
	s.expectProxy("", nil)
}

func proxyNamespace(s *suite) {
	s.set(shop())
	s.set(fixture{hostname: "copy.example.com", namespace: "money", ports: []uint32{80}, addresses: []string{"10.1.1.1"}})
	s.expectProxy("retail", []string{"10.1.1.1"}, shopInstance)
	s.expectProxy("elsewhere", []string{"10.1.1.1"})
	s.expectProxy("", []string{"10.1.1.1"}, shopInstance, "money/copy.example.com 10.1.1.1:8080 for http-80")
}

func proxyFollows(s *suite) {
	s.set(shop())
	s.set(shop().with("10.1.1.9"))
	s.expectProxy("", []string{"10.1.1.1"})
	s.expectProxy("", []string{"10.1.1.9"}, "retail/shop.example.com 10.1.1.9:8080 for http-80")
	s.set(shop().onPorts(81).with("10.1.1.9"))
	s.expectProxy("", []string{"10.1.1.9"}, "retail/shop.example.com 10.1.1.9:8081 for http-81")
	s.remove(shop())
	s.expectProxy("", []string{"10.1.1.9"})
}
