// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestLabelKeys: proxies are distinguished by every label that a policy looks at, and
// by no other.
func TestLabelKeys(t *testing.T) {
	var configs configList
	configs.object(t, `VirtualService shop/v {"hosts": ["cart"], "http": [{"match": [{"sourceLabels": {"source": "x"}}]}]}`)
	configs.object(t, `Gateway shop/g {"selector": {"gateway": "x"}}`)
	configs.object(t, `Sidecar shop/s {"workloadSelector": {"labels": {"sidecar": "x"}}}`)
	configs.add(istio.DestinationRule, "shop/d", spec(t, `{"host": "cart", "workloadSelector": {"matchLabels": {"rule": "x"}},
		"trafficPolicy": {"loadBalancer": {"localityLbSetting": {"failoverPriority": ["locality", "value=x"]}}},
		"subsets": [{"name": "v1", "trafficPolicy": {"portLevelSettings": [{"port": {"number": 80},
			"loadBalancer": {"zoneAwareLbSetting": {"failoverPriority": ["zone"]}}}]}}]}`, &networking.DestinationRule{}))
	var got []string
	for key := range newIndex(configs, newSettings(Options{})).labelKeys.All() {
		got = append(got, key)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"gateway", "locality", "rule", "sidecar", "source", "zone"}, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
