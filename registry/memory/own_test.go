// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/registrytest"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// catalogue is a host's own registry, for a discovery system with records. The embedded registry
// fulfills the contract of package registry; the host only converts records into services and
// endpoints.
type catalogue struct{ *memory.Registry }

// record is one service of the discovery system.
type record struct {
	name, namespace string
	created         time.Time
	ports           []*registry.Port
	// instances have, by IP address, the port that serves each of ports.
	instances map[string]map[string]uint32
}

func newCatalogue(cluster registry.ClusterID, updater xdsupdate.XDSUpdater) *catalogue {
	return &catalogue{memory.New(memory.Options{Provider: "Catalogue", Cluster: cluster, Updater: updater})}
}

// put takes the state of a record. One that is unchanged has no effect, and neither has
// one with a defect, which the error names.
func (c *catalogue) put(r record) error {
	var endpoints []*registry.Endpoint
	for address, targets := range r.instances {
		for _, p := range r.ports {
			endpoints = append(endpoints, &registry.Endpoint{
				Addresses: []string{address}, ServicePort: p.Number, ServicePortName: p.Name, EndpointPort: targets[p.Name],
			})
		}
	}
	service := &registry.Service{
		Hostname: registry.Hostname(r.name), Ports: r.ports, CreationTime: r.created,
		Attributes: registry.ServiceAttributes{Namespace: r.namespace},
	}
	return c.Set(service, endpoints)
}

// remove takes the end of a record.
func (c *catalogue) remove(host registry.Hostname, namespace string) error {
	return c.RemoveService(host, namespace)
}

// TestCatalogue proves that the registry keeps the promises.
func TestCatalogue(t *testing.T) {
	registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
		tb.Helper()
		c := newCatalogue("east", xdsupdate.Discard{})
		return registrytest.Subject{
			Registry: c,
			Set: func(s *registry.Service, endpoints []*registry.Endpoint) {
				r := record{string(s.Hostname), s.Attributes.Namespace, s.CreationTime, s.Ports, map[string]map[string]uint32{}}
				for _, e := range endpoints {
					if r.instances[e.Address()] == nil {
						r.instances[e.Address()] = map[string]uint32{}
					}
					r.instances[e.Address()][e.ServicePortName] = e.EndpointPort
				}
				if err := c.put(r); err != nil {
					tb.Error(err)
				}
			},
			Remove: func(host registry.Hostname, namespace string) {
				if err := c.remove(host, namespace); err != nil {
					tb.Error(err)
				}
			},
		}
	})
}
