// SPDX-License-Identifier: Apache-2.0

package gatewayapi_test

import (
	"os"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
)

// TestBackendTLSOfServiceEntry: a BackendTLSPolicy for a ServiceEntry makes the traffic to the entry's
// hosts TLS, and its status has the Gateway as ancestor. A target of another kind gets a condition.
func TestBackendTLSOfServiceEntry(t *testing.T) {
	objects, err := os.ReadFile("testdata/cases/backendtls-serviceentry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	route := strings.ReplaceAll(strings.ReplaceAll(cartRoute, "cart.internal", "a.internal"), "name: cart", "name: egress")
	d := newDirectory(t, gatewayapi.CacheOptions{})
	if errs := d.write("a.yaml", edgeClass+"---\n"+edgeGateway+"---\n"+string(objects)+"---\n"+route); len(errs) > 0 {
		t.Fatal(errs)
	}
	rules := d.cache.List(istio.DestinationRule, "")
	if len(rules) != 1 {
		t.Fatalf("%d DestinationRules", len(rules))
	}
	rule := rules[0].Spec.(*networking.DestinationRule)
	tls := rule.GetTrafficPolicy().GetTls()
	if rule.GetHost() != "a.internal" || tls.GetMode() != networking.ClientTLSSettings_SIMPLE || tls.GetSni() != "a.internal" {
		t.Errorf("DestinationRule of host %q with TLS %v", rule.GetHost(), tls)
	}
	if got := policyConditions(d.cache); !strings.Contains(got, "edge Accepted=True Accepted") {
		t.Errorf("conditions %q", got)
	}
	d.write("a.yaml", edgeClass+"---\n"+edgeGateway+"---\n"+strings.Replace(string(objects),
		"targetRefs: [{group: networking.istio.io, kind: ServiceEntry, name: a}]",
		"targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: egress}]", 1)+"---\n"+route)
	if got := policyConditions(d.cache); !strings.Contains(got, "Accepted=False") {
		t.Errorf("conditions %q of a policy for an HTTPRoute", got)
	}
}

// policyConditions returns the conditions of all policies.
func policyConditions(c *gatewayapi.Cache) string {
	var out strings.Builder
	for _, status := range c.Snapshot().Statuses() {
		policy, ok := status.(*gatewayv1.PolicyStatus)
		if !ok {
			continue
		}
		for _, ancestor := range policy.Ancestors {
			for _, condition := range ancestor.Conditions {
				out.WriteString(string(ancestor.AncestorRef.Name) + " " + condition.Type + "=" + string(condition.Status) + " " + condition.Reason + "\n")
			}
		}
	}
	return out.String()
}
