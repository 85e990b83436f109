// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/registrytest"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// subject gives the suite a registry. Errors would show as missing content.
func subject(tb testing.TB, opts memory.Options) registrytest.Subject {
	tb.Helper()
	r := memory.New(opts)
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Errorf("%v", err)
		}
	}
	return registrytest.Subject{
		Registry: r,
		Set: func(s *registry.Service, endpoints []*registry.Endpoint) {
			must(r.Set(s, endpoints))
		},
		Remove:      func(h registry.Hostname, namespace string) { must(r.RemoveService(h, namespace)) },
		SetWorkload: func(w *registry.WorkloadInstance) { must(r.SetWorkload(w)) },
		RemoveWorkload: func(namespace, name string) {
			must(r.RemoveWorkload(registry.WorkloadKey{Namespace: namespace, Name: name}))
		},
		SetGateways: r.SetNetworkGateways,
	}
}

func TestInstance(t *testing.T) {
	registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
		tb.Helper()
		return subject(tb, memory.Options{})
	})
}

func TestInstanceWithUpdater(t *testing.T) {
	registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
		tb.Helper()
		return subject(tb, memory.Options{Cluster: "east", Updater: &updater{index: xdsupdate.NewEndpointIndex()}})
	})
}
