// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// TestGatewaySelects: a Gateway that was made of one of Kubernetes is for the routers of its namespace
// that have its label, or that are behind its Services; others are for whom they select.
func TestGatewaySelects(t *testing.T) {
	made := func(namespace string, annotations map[string]string) *gateway {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[gatewaySemanticsAnnotation] = "gateway"
		annotations[gatewayServiceAnnotation] = "edge-istio.infra.svc.cluster.local,other.infra.svc.cluster.local"
		return newGateway(&configstore.Config{
			Meta: configstore.Meta{Namespace: namespace, Name: "edge~web", Labels: map[string]string{gatewayLabel: "edge"}, Annotations: annotations},
		}, &networking.Gateway{})
	}
	labelled := registry.Labels{gatewayLabel: "edge"}
	behind := []string{"other.infra.svc.cluster.local"}
	ofGateway, ofSet := made("infra", nil), made("shop", map[string]string{parentNamespaceAnnotation: "infra"})
	written := newGateway(&configstore.Config{
		Meta: configstore.Meta{Namespace: "shop", Name: "edge", Labels: map[string]string{gatewayLabel: "edge"}},
	}, &networking.Gateway{Selector: map[string]string{"app": "edge"}})
	for name, test := range map[string]struct {
		gateway *gateway
		proxy   *proxy
		want    bool
	}{
		"label":                   {ofGateway, &proxy{namespace: "infra", labels: labelled}, true},
		"label, other namespace":  {ofGateway, &proxy{namespace: "shop", labels: labelled}, false},
		"other label":             {ofGateway, &proxy{namespace: "infra", labels: registry.Labels{gatewayLabel: "west"}}, false},
		"no label":                {ofGateway, &proxy{namespace: "infra"}, false},
		"service":                 {ofGateway, &proxy{namespace: "infra", services: behind}, true},
		"service, elsewhere":      {ofGateway, &proxy{namespace: "shop", services: behind}, false},
		"other service":           {ofGateway, &proxy{namespace: "infra", services: []string{"x.infra.svc.cluster.local"}}, false},
		"listener set":            {ofSet, &proxy{namespace: "infra", labels: labelled}, true},
		"listener set, its own":   {ofSet, &proxy{namespace: "shop", labels: labelled}, false},
		"selector":                {written, &proxy{namespace: "any", labels: registry.Labels{"app": "edge"}}, true},
		"selector, and the label": {written, &proxy{namespace: "shop", labels: labelled}, false},
	} {
		if got := test.gateway.selects(test.proxy); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
