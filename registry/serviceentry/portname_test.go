// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// TestPortIsRenamed: endpoints have the name that their port has now, and the number
// that a workload gives under this name, however they came to the entry.
func TestPortIsRenamed(t *testing.T) {
	t.Parallel()
	named := func(first, second string) func(*networking.ServiceEntry) {
		return func(e *networking.ServiceEntry) {
			e.Ports[0].Name = first
			e.Ports = append(e.Ports, &networking.ServicePort{Number: 81, Name: second, Protocol: "HTTP"})
			e.Endpoints[0].Ports = map[string]uint32{"web": 8080}
		}
	}
	s := newSystem(t, serviceentry.Options{})
	for _, want := range []struct {
		first, second string
		port          uint32
	}{{"http", "web", 80}, {"web", "http", 8080}, {"http", "web", 80}} {
		s.apply(entry("a", named(want.first, want.second), "a.com", "1.1.1.1"))
		instances := s.registry.InstancesByPort(s.registry.GetService("a.com"), 80)
		diff(t, "instances", len(instances), 1)
		for _, i := range instances {
			diff(t, "name of the endpoint's port", i.Endpoint.ServicePortName, want.first)
			diff(t, "number of the endpoint's port", i.Endpoint.EndpointPort, want.port)
		}
	}
}
