// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func TestDefectGetServiceIsArbitrary(t *testing.T) {
	t.Parallel()
	at := func(seconds int64, c configstore.Config) configstore.Config {
		c.CreationTimestamp = time.Unix(seconds, 0)
		return c
	}
	s := newSystem(t, serviceentry.Options{})
	chosen := func() string {
		service := s.registry.GetService("a.com")
		return service.Attributes.Namespace + "/" + service.Attributes.ObjectName
	}
	s.apply(at(5, inNamespace("a", entry("c", nil, "a.com"))))
	diff(t, "the only one", chosen(), "a/c")
	s.apply(at(5, inNamespace("c", entry("a", nil, "a.com"))), at(5, inNamespace("b", entry("a", nil, "a.com"))))
	diff(t, "the first namespace, then name", chosen(), "a/c")
	s.apply(at(4, inNamespace("z", entry("z", nil, "a.com"))))
	diff(t, "the oldest", chosen(), "z/z")
	s.delete(istio.ServiceEntry, "z", "z")
	diff(t, "without the oldest", chosen(), "a/c")
}

// Of endpoints that are written alike a proxy is the last, however they came to
// their places. Only an entry that was not validated has nil among them.
func TestDefectLastOfAlikeEndpoints(t *testing.T) {
	t.Parallel()
	cache := memory.NewController(memory.Make(istio.Schemas(), memory.Options{SkipValidation: true}))
	r := serviceentry.New(cache, xdsupdate.Discard{}, serviceentry.Options{})
	alike := func(weight uint32) *networking.WorkloadEntry {
		return &networking.WorkloadEntry{
			Address: "1.1.1.1", Weight: weight, Labels: map[string]string{"service.istio.io/workload-name": "w"},
		}
	}
	last := func(endpoints ...*networking.WorkloadEntry) uint32 {
		t.Helper()
		c := entry("a", func(spec *networking.ServiceEntry) { spec.Endpoints = endpoints }, "a.com")
		write := cache.Create
		if cache.Get(c.GroupVersionKind, c.Name, c.Namespace) != nil {
			write = cache.Update
		}
		if _, err := write(c); err != nil {
			t.Fatal(err)
		}
		cache.Drain()
		instances := r.GetProxyServiceInstances(&registry.Proxy{IPAddresses: []string{"1.1.1.1"}, Namespace: c.Namespace})
		if len(instances) != 1 {
			t.Fatalf("%d instances, want 1", len(instances))
		}
		return instances[0].Endpoint.Attributes().LbWeight
	}
	diff(t, "behind two that are nil", last(nil, nil, alike(1), alike(2)), uint32(2))
	diff(t, "the first kept, the second another one", last(alike(1), alike(3)), uint32(3))
}
