// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestLabelKeys: clients are distinguished by every label that a policy looks at, and by no
// other; by none that policies looked at before.
func TestLabelKeys(t *testing.T) {
	objects := objectsOf(t,
		`VirtualService shop/v {"hosts": ["cart"], "http": [{"match": [{"sourceLabels": {"source": "x"}}]}]}`,
		`Gateway shop/g {"selector": {"gateway": "x"}}`,
		`Sidecar shop/s {"workloadSelector": {"labels": {"sidecar": "x"}}}`,
		`DestinationRule shop/d {"host": "cart", "workloadSelector": {"matchLabels": {"rule": "x"}},
			"trafficPolicy": {"loadBalancer": {"localityLbSetting": {"failoverPriority": ["locality", "value=x"]}}},
			"subsets": [{"name": "v1", "trafficPolicy": {"portLevelSettings": [{"port": {"number": 80},
				"loadBalancer": {"zoneAwareLbSetting": {"failoverPriority": ["zone"]}}}]}}]}`)
	s := stage(t, traffic.Options{}, objects, nil)
	keys := []string{"gateway", "locality", "rule", "sidecar", "source", "zone", "other", "value"}
	check := func(when string, looked int) {
		plain := s.view(in("sidecar", "shop"))
		for i, key := range keys {
			if got, want := s.view(in("sidecar", "shop", key+"=x")) != plain, i < looked; got != want {
				t.Errorf("%s, clients are distinguished by %s: %t, want %t", when, key, got, want)
			}
		}
	}
	check("with policies", 6)
	for _, c := range objects {
		s.must(s.store.Delete(c.GroupVersionKind, c.Name, c.Namespace, nil))
	}
	s.applied()
	check("without policies", 0)
}
