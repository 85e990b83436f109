// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/registrytest"
)

// instance makes a registry of an aggregate.
func instance(c *aggregate.Controller) registry.Instance {
	return registry.Simple{Controller: c, ServiceDiscovery: c, ProviderID: registry.Memory, ClusterID: "all"}
}

func TestControllerKeepsThePromisesOfARegistry(t *testing.T) {
	for name, provider := range map[string]registry.ProviderID{"kubernetes": registry.Kubernetes, "other": registry.Memory} {
		t.Run(name, func(t *testing.T) {
			registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
				tb.Helper()
				c := aggregate.NewController(aggregate.Options{})
				before := memory.New(memory.Options{Provider: registry.Kubernetes, Cluster: "before"})
				r := memory.New(memory.Options{Provider: provider, Cluster: "filled"})
				after := memory.New(memory.Options{Cluster: "after"})
				c.AddRegistry(given(before))
				c.AddRegistry(given(r))
				c.AddRegistry(given(after))
				return subject(tb, instance(c), r)
			})
		})
	}
}

// subject is an aggregate that the suite changes through one of its registries.
func subject(tb testing.TB, aggregated registry.Instance, r *memory.Registry) registrytest.Subject {
	tb.Helper()
	ok := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Errorf("%v", err)
		}
	}
	return registrytest.Subject{
		Registry: aggregated,
		Set: func(s *registry.Service, endpoints []*registry.Endpoint) {
			ok(r.Set(s, endpoints))
		},
		Remove:      func(h registry.Hostname, namespace string) { ok(r.RemoveService(h, namespace)) },
		SetWorkload: func(w *registry.WorkloadInstance) { ok(r.SetWorkload(w)) },
		RemoveWorkload: func(namespace, name string) {
			ok(r.RemoveWorkload(registry.WorkloadKey{Namespace: namespace, Name: name}))
		},
		SetGateways: r.SetNetworkGateways,
	}
}
