// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// derivedObjects are as a Gateway of Kubernetes with two listeners, one of them of a set in another
// namespace, becomes them. A field that is left out is of the second listener.
func derivedObjects(t *testing.T, more ...string) configList {
	t.Helper()
	objects := objectsOf(t, append([]string{
		`Gateway infra/edge-http {"servers": [{"hosts": ["*/cart.example.com"], "port": {"number": 20080, "name": "http", "protocol": "HTTP"}}]}`,
		`Gateway teams/edge-tls {"servers": [{"hosts": ["*/tls.example.com"], "port": {"number": 443, "name": "tls", "protocol": "TLS"}, "tls": {"mode": "PASSTHROUGH"}}]}`,
		`VirtualService shop/cart {"hosts": ["cart.example.com"], "gateways": ["infra/edge-http"], "exportTo": ["infra"],
			"http": [{"route": [{"destination": {"host": "cart"}}]}]}`,
		`VirtualService shop/tls {"hosts": ["tls.example.com"], "gateways": ["teams/edge-tls"],
			"tls": [{"match": [{"sniHosts": ["tls.example.com"]}], "route": [{"destination": {"host": "cart"}}]}]}`,
	}, more...)...)
	for _, g := range objects[:2] {
		g.Labels = map[string]string{"gateway.networking.k8s.io/gateway-name": "edge"}
		g.Annotations = map[string]string{"internal.istio.io/gateway-semantics": "gateway"}
	}
	objects[1].Annotations["internal.istio.io/parent-namespace"] = "infra"
	return objects
}

// TestDerivedGatewaysHaveEffect: Gateways that were made of one of Kubernetes are for the routers
// of that one, which are in its namespace and have its label.
func TestDerivedGatewaysHaveEffect(t *testing.T) {
	svc := testService("shop", "cart.shop.svc.cluster.local", 80)
	svc.Attributes.ExportTo = []registry.Visibility{"shop", "infra"}
	s := stage(t, traffic.Options{}, derivedObjects(t,
		`AuthorizationPolicy infra/deny {"selector": {"matchLabels": {"gateway.networking.k8s.io/gateway-name": "edge"}}, "action": "DENY", "rules": [{}]}`,
		`AuthorizationPolicy shop/deny {"selector": {"matchLabels": {"app": "none"}}, "action": "DENY", "rules": [{}]}`,
	), populate(svc))
	want := []string{"AuthorizationPolicy shop/deny: " + nobodyEnforces}
	if diff := cmp.Diff(want, s.ineffective()); diff != "" {
		t.Errorf("without effect (-want +got):\n%s", diff)
	}
	for name, want := range map[objectKey]string{
		{"infra", "edge-http"}: "routers of namespace infra of the Kubernetes Gateway edge: HTTP on port 20080 for */cart.example.com",
		{"teams", "edge-tls"}:  "routers of namespace infra of the Kubernetes Gateway edge: TLS on port 443 for */tls.example.com",
	} {
		does, _ := s.policies.Effects(configstore.ConfigKey{Kind: istio.Gateway, Namespace: name.namespace, Name: name.name})
		if len(does) != 1 || does[0].String() != want {
			t.Errorf("effects of %v: %v, want %s", name, does, want)
		}
	}
}

type objectKey struct{ namespace, name string }

const nobodyEnforces = "only gateways and gRPC servers enforce it, and no Gateway is for routers that it selects, and no service has a workload that it does"

// TestDerivedGatewaysLeftOut: what is left out of their listeners and routes is found.
func TestDerivedGatewaysLeftOut(t *testing.T) {
	objects := derivedObjects(t)
	s := stage(t, traffic.Options{Limits: traffic.Limits{SharedBytes: 64}}, objects, populate(testService("shop", "cart.shop.svc.cluster.local", 80)))
	want := []string{
		"VirtualService shop/cart: spec.http: its routes are left out, and requests to hosts that no other VirtualService is for are answered with 500: " +
			"the VirtualServices of the route configuration would have more than 64 bytes, and its namespace has no room for it in its share",
		"VirtualService shop/tls: spec.tls: its connections are closed: the VirtualServices of the listener would have more than 64 bytes, and its namespace has no room for it in its share",
	}
	if diff := cmp.Diff(want, s.ineffective()); diff != "" {
		t.Errorf("without effect (-want +got):\n%s", diff)
	}
}

// TestDestinationWithoutHost: a backend that may not be used is none.
func TestDestinationWithoutHost(t *testing.T) {
	s := stage(t, traffic.Options{}, derivedObjects(t,
		`VirtualService shop/none {"hosts": ["cart.example.com"], "gateways": ["infra/edge-http"], "http": [{"route": [{"destination": {}}]}]}`,
	), populate(testService("shop", "cart.shop.svc.cluster.local", 80)))
	want := []string{"VirtualService shop/none: spec.http[0].route[0].destination.host: the destination has no host: requests fail"}
	if diff := cmp.Diff(want, s.ineffective()); diff != "" {
		t.Errorf("without effect (-want +got):\n%s", diff)
	}
}

// TestHeadersBesideTheDelegates: what a root's rule says of headers is lost beside what its
// delegate's rule says of them.
func TestHeadersBesideTheDelegates(t *testing.T) {
	const headers = `"headers": {"request": {"set": {"x": "y"}}}`
	s := stage(t, traffic.Options{}, objectsOf(t,
		`VirtualService shop/root {"hosts": ["cart"], "http": [{`+headers+`, "delegate": {"name": "part"}}]}`,
		`VirtualService shop/part {"http": [{"route": [{"destination": {"host": "cart"}}]}, {`+headers+`, "route": [{"destination": {"host": "cart"}}]}]}`,
	), populate(testService("shop", "cart.shop.svc.cluster.local", 80)))
	want := []string{"VirtualService shop/root: spec.http[0].headers: spec.http[1] of the delegate shop/part has headers of its own, which count instead"}
	if diff := cmp.Diff(want, s.ineffective()); diff != "" {
		t.Errorf("without effect (-want +got):\n%s", diff)
	}
}
