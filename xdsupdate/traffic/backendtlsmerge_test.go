// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// settingsOf tells what of users' rules and of BackendTLSPolicies a client has in a cluster.
func settingsOf(t *testing.T, s *scene, namespace, cluster string) string {
	t.Helper()
	c := s.cluster(in("router", namespace, "app=edge"), cluster)
	if c == nil {
		return "no cluster"
	}
	out := fmt.Sprintf("errors %d, connections %d", c.GetOutlierDetection().GetConsecutive_5Xx().GetValue(),
		c.GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue())
	if c.GetTransportSocket() == nil {
		return out
	}
	var tls tlsv3.UpstreamTlsContext
	if err := c.GetTransportSocket().GetTypedConfig().UnmarshalTo(&tls); err != nil {
		t.Fatal(err)
	}
	return out + ", TLS to " + tls.GetSni()
}

// TestRulesBesideBackendTLSPolicies: a BackendTLSPolicy gives the policy of users' rules the TLS settings that they do not have,
// and takes nothing from it, whichever is older, and whatever of the host, the port, the workloads or the namespaces the
// users' rule is for.
func TestRulesBesideBackendTLSPolicies(t *testing.T) {
	const (
		catalog = "catalog.shop.svc.cluster.local"
		mine    = `"outlierDetection": {"consecutive5xxErrors": 3}, "connectionPool": {"tcp": {"maxConnections": 9}}`
		general = `{"host": "catalog", "trafficPolicy": {"tls": {"mode": "SIMPLE", "sni": "policy.test"}}}`
		of90    = `{"host": "catalog", "trafficPolicy": {"portLevelSettings": [{"port": {"number": 90}, "tls": {"mode": "SIMPLE", "sni": "policy.test"}}]}}`
		full    = "errors 3, connections 9, TLS to policy.test"
		plain   = "errors 3, connections 9"
		none    = "errors 0, connections 4294967295, TLS to policy.test"
	)
	for name, c := range map[string]struct{ policy, rule, of80, of90 string }{
		"all":                    {general, `shop/mine {"host": "catalog", "trafficPolicy": {` + mine + `}}`, full, full},
		"a section":              {of90, `shop/mine {"host": "catalog", "trafficPolicy": {` + mine + `}}`, plain, full},
		"a port of the rule":     {general, `shop/mine {"host": "catalog", "trafficPolicy": {"portLevelSettings": [{"port": {"number": 90}, ` + mine + `}]}}`, none, full},
		"a section and its port": {of90, `shop/mine {"host": "catalog", "trafficPolicy": {` + mine + `, "portLevelSettings": [{"port": {"number": 90}, ` + mine + `}]}}`, plain, full},
		"no rule":                {general, `shop/mine {"host": "cart"}`, none, none},
		"a wildcard":             {general, `shop/mine {"host": "*.shop.svc.cluster.local", "trafficPolicy": {` + mine + `}}`, full, full},
		"the client's namespace": {general, `ingress/mine {"host": "` + catalog + `", "trafficPolicy": {` + mine + `}}`, full, full},
		"a private rule":         {general, `shop/mine {"host": "catalog", "exportTo": ["ingress"], "trafficPolicy": {` + mine + `}}`, full, full},
		"workloads": {
			general, `ingress/mine {"host": "` + catalog + `", "workloadSelector": {"matchLabels": {"app": "edge"}}, "trafficPolicy": {` + mine + `}}`, full, full,
		},
		"TLS of the rule": {
			general, `shop/mine {"host": "catalog", "trafficPolicy": {` + mine + `, "tls": {"mode": "SIMPLE", "sni": "mine.test"}}}`,
			plain + ", TLS to mine.test", plain + ", TLS to mine.test",
		},
		"TLS of a port of the rule": {
			general, `shop/mine {"host": "catalog", "trafficPolicy": {` + mine + `, "portLevelSettings": [{"port": {"number": 90}, "tls": {"mode": "DISABLE"}}]}}`,
			full, "errors 0, connections 4294967295",
		},
	} {
		for _, age := range []int{-1, 0, 1} {
			configs := objectsOf(t, "DestinationRule shop/policy "+c.policy, "DestinationRule "+c.rule)
			configs[0].Annotations = map[string]string{"internal.istio.io/parents": "BackendTLSPolicy/shop.p"}
			for i, config := range configs {
				config.CreationTimestamp = time.Date(2026, 1, 1, 0, 0, 10+i*age, 0, time.UTC)
			}
			s := stage(t, traffic.Options{}, configs, cartPopulation())
			got := [2]string{settingsOf(t, s, "ingress", "outbound|80||"+catalog), settingsOf(t, s, "ingress", "outbound|90||"+catalog)}
			if diff := cmp.Diff([2]string{c.of80, c.of90}, got); diff != "" {
				t.Errorf("%s, age %d (-want +got):\n%s", name, age, diff)
			}
			if found := s.policies.Ineffective(); name != "no rule" && len(found) > 0 {
				t.Errorf("%s, age %d: %v", name, age, found)
			}
		}
	}
}
