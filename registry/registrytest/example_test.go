// SPDX-License-Identifier: Apache-2.0

package registrytest_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/registrytest"
)

// A registry is proved by a test of its own package. This one proves the
// registry of package memory.
func ExampleTestInstance() { //nolint:testableexamples // the suite needs a *testing.T
	_ = func(t *testing.T) { // TestMyRegistry
		t.Helper()
		registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
			tb.Helper()
			r := memory.New(memory.Options{})
			check := func(err error) {
				if err != nil {
					tb.Error(err)
				}
			}
			return registrytest.Subject{
				Registry: r,
				Set:      func(s *registry.Service, endpoints []*registry.Endpoint) { check(r.Set(s, endpoints)) },
				Remove: func(hostname registry.Hostname, namespace string) {
					check(r.RemoveService(hostname, namespace))
				},
			}
		})
	}
}
