// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// population is the services of a scene, and their endpoints.
type population struct {
	services  []*registry.Service
	endpoints map[*registry.Service][]*registry.Endpoint
}

func populate(services ...*registry.Service) *population {
	return &population{services: services, endpoints: make(map[*registry.Service][]*registry.Endpoint)}
}

// testService has ports of HTTP.
func testService(namespace string, host registry.Hostname, ports ...uint32) *registry.Service {
	s := &registry.Service{
		Hostname: host, DefaultAddress: registry.UnspecifiedAddress, Attributes: registry.ServiceAttributes{Namespace: namespace},
	}
	for _, p := range ports {
		s.Ports = append(s.Ports, &registry.Port{Number: p, Name: fmt.Sprint("http-", p), Protocol: registry.ProtocolHTTP})
	}
	return s
}

// place puts endpoints, "ADDRESS key=value …", behind all ports of a service. Their labels
// "port", "tls" and "account" are the port, the TLS mode and the service account.
func (p *population) place(s *registry.Service, endpoints ...string) {
	var list []*registry.Endpoint
	for _, text := range endpoints {
		fields := strings.Fields(text)
		labels := registry.Labels{}
		for _, f := range fields[1:] {
			key, value, _ := strings.Cut(f, "=")
			labels[key] = value
		}
		for _, port := range s.Ports {
			number := port.Number
			if labels["port"] != "" {
				_, _ = fmt.Sscan(labels["port"], &number)
			}
			list = append(list, &registry.Endpoint{
				Addresses: []string{fields[0]}, EndpointPort: number, ServicePort: port.Number, ServicePortName: port.Name, HealthStatus: registry.Healthy,
				Shared: &registry.EndpointAttributes{Namespace: s.Attributes.Namespace, Labels: labels, TLSMode: labels["tls"], ServiceAccount: labels["account"]},
			})
		}
	}
	p.endpoints[s] = list
}

// cartPopulation has services of the namespaces shop and billing, one of them spelled in
// upper case.
func cartPopulation() *population {
	external := testService("shop", "ext.shop.svc.cluster.local", 80)
	external.MeshExternal = true
	return populate(
		testService("shop", "Cart.shop.svc.cluster.local", 8080),
		testService("shop", "catalog.shop.svc.cluster.local", 80, 90),
		testService("billing", "ledger.billing.svc.cluster.local", 80), external,
	)
}

// cartOutbound is the cluster of the service in upper case.
const cartOutbound = "outbound|8080||Cart.shop.svc.cluster.local"
