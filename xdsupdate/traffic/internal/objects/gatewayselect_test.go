// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// TestGatewaySelects: a Gateway that was made of one of Kubernetes is for the routers of its namespace
// that have its label, or that are behind its Services; others are for whom they select.
func TestGatewaySelects(t *testing.T) {
	made := func(namespace string, annotations map[string]string) *Gateway {
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
		gateway *Gateway
		proxy   *Proxy
		want    bool
	}{
		"label":                   {ofGateway, &Proxy{Namespace: "infra", Labels: labelled}, true},
		"label, other namespace":  {ofGateway, &Proxy{Namespace: "shop", Labels: labelled}, false},
		"other label":             {ofGateway, &Proxy{Namespace: "infra", Labels: registry.Labels{gatewayLabel: "west"}}, false},
		"no label":                {ofGateway, &Proxy{Namespace: "infra"}, false},
		"service":                 {ofGateway, &Proxy{Namespace: "infra", Services: behind}, true},
		"service, elsewhere":      {ofGateway, &Proxy{Namespace: "shop", Services: behind}, false},
		"other service":           {ofGateway, &Proxy{Namespace: "infra", Services: []string{"x.infra.svc.cluster.local"}}, false},
		"listener set":            {ofSet, &Proxy{Namespace: "infra", Labels: labelled}, true},
		"listener set, its own":   {ofSet, &Proxy{Namespace: "shop", Labels: labelled}, false},
		"selector":                {written, &Proxy{Namespace: "any", Labels: registry.Labels{"app": "edge"}}, true},
		"selector, and the label": {written, &Proxy{Namespace: "shop", Labels: labelled}, false},
	} {
		if got := test.gateway.Selects(test.proxy); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
