// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
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

// Of workloads with one address and one workload name a proxy is the last by
// name, whichever came or changed last.
func TestDefectLastOfAlikeWorkloads(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"))
	put := func(name string, weight uint32) {
		c := workloadEntry(name, "1.1.1.1", nil)
		c.Labels = map[string]string{"service.istio.io/workload-name": "one"}
		spec, _ := c.Spec.(*networking.WorkloadEntry)
		spec.Weight = weight
		s.apply(c)
	}
	weights := func() []uint32 {
		var out []uint32
		for _, i := range s.registry.GetProxyServiceInstances(&registry.Proxy{IPAddresses: []string{"1.1.1.1"}}) {
			out = append(out, i.Endpoint.Attributes().LbWeight)
		}
		return out
	}
	put("w", 1)
	put("v", 2)
	diff(t, "the first by name came last", weights(), []uint32{1})
	put("v", 3)
	diff(t, "the first by name changed", weights(), []uint32{1})
	put("w", 4)
	diff(t, "the last by name changed", weights(), []uint32{4})
	s.delete(istio.WorkloadEntry, "ns", "w")
	diff(t, "the last by name gone", weights(), []uint32{3})
}

// Endpoints that are written in one entry are distinguished by their places.
func TestDefectInlineEndpointsAlike(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.1"))
	diff(t, "instances", s.targets("ns", "1.1.1.1"), []string{"a/a.com/0.0.0.0:80>80", "a/a.com/0.0.0.0:80>80"})
}
