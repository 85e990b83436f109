// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
)

const class = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: istio.io/gateway-controller}
`

const edge = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: edge
  infrastructure: {labels: {tier: front}}
  listeners: [{name: web, port: 80, protocol: HTTP}]
`

const cart = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart}
spec:
  parentRefs: [{name: edge}]
  hostnames: [cart.example.com]
  rules: [{backendRefs: [{name: cart, port: 8080}]}]
`

const cartService = `
apiVersion: v1
kind: Service
metadata: {name: cart}
spec: {ports: [{name: http, port: 8080}]}
`

func ready(addresses ...string) func(gatewayapi.Desired) (gatewayapi.Provided, error) {
	return func(gatewayapi.Desired) (gatewayapi.Provided, error) {
		p := gatewayapi.Provided{Ready: true}
		for _, a := range addresses {
			p.Addresses = append(p.Addresses, gatewayv1.GatewayStatusAddress{Type: new(gatewayv1.IPAddressType), Value: a})
		}
		return p, nil
	}
}

const shopSecret = `
apiVersion: v1
kind: Secret
metadata: {name: shop}
stringData: {cert: text, crl: lists, password: secret}
`

// TestCluster: objects become configs and statuses, with the addresses of an Infrastructure.
func TestCluster(t *testing.T) {
	s := newSite(t)
	s.apply(class + "---" + edge + "---" + cart)
	h := &host{answer: ready("10.0.0.1")}
	p := s.start(restConfig(s.server.Config()), cluster.Options{CacheOptions: gatewayapi.CacheOptions{Infrastructure: h}},
		kube.StatusOptions{Lease: "gateways", LeaseNamespace: s.namespace})
	s.synced(p)
	if got := p.cache.List(istio.VirtualService, s.namespace); len(got) != 1 {
		t.Fatalf("%d VirtualServices", len(got))
	}
	key := gatewayapi.Key{Namespace: s.namespace, Name: "edge"}
	eventually(t, "the host is asked", func() bool { d, ok := h.of(key); return ok && slices.Equal(d.Ports(), []int32{80}) })
	if d, _ := h.of(key); d.Labels["tier"] != "front" || d.Class != "edge" {
		t.Errorf("%+v", d)
	}
	eventually(t, "the Gateway is programmed", func() bool {
		status, _, _ := condition(s.get("gateways", "edge"), "Programmed", "status")
		return status == "True"
	})
	eventually(t, "the route has no backend", func() bool {
		status, reason, _ := condition(s.get("httproutes", "cart"), "ResolvedRefs", "status", "parents", "0")
		return status == "False" && reason == "BackendNotFound"
	})
	s.apply(cartService)
	eventually(t, "the route has a backend", func() bool {
		status, _, _ := condition(s.get("httproutes", "cart"), "ResolvedRefs", "status", "parents", "0")
		return status == "True"
	})
	told := make(chan struct{}, 1)
	p.cache.OnData(func() {
		select {
		case told <- struct{}{}:
		default:
		}
	})
	s.apply(shopSecret)
	eventually(t, "the certificate of a Secret is announced", func() bool { return len(told) == 1 })
	want := map[string][]byte{"cert": []byte("text"), "crl": []byte("lists")}
	if diff := cmp.Diff(want, p.cache.Secret(gatewayapi.Key{Namespace: s.namespace, Name: "shop"})); diff != "" {
		t.Errorf("the Secret (-want +got):\n%s", diff)
	}
	s.remove(edge)
	eventually(t, "nothing is left", func() bool {
		_, there := h.of(key)
		return !there && len(p.cache.List(istio.VirtualService, s.namespace)) == 0 &&
			len(p.cache.List(istio.Gateway, s.namespace)) == 0
	})
}
