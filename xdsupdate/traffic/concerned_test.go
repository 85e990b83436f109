// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestTwoGatewaysOfOnePort: a VirtualService concerns the routers of all its Gateways,
// also if they give a route configuration the same name.
func TestTwoGatewaysOfOnePort(t *testing.T) {
	var configs configList
	for _, app := range []string{"edge", "inner"} {
		g := gatewayOf(serverOf(80, "HTTP", "", "*"))
		g.Selector = map[string]string{"app": app}
		configs.add(istio.Gateway, "ingress/"+app, g)
	}
	bound := []string{"ingress/edge", "ingress/inner"}
	configs.add(istio.VirtualService, "shop/v", toCart("/a", bound, "a.com"))
	x, w := newIndex(configs, newSettings(Options{})), newListWorld()
	var changed configList
	changed.add(istio.VirtualService, "shop/v", toCart("/b", bound, "a.com"))
	key := changed[0].Key()
	before, _ := x.objects.Get(key)
	after := newObject(changed[0], x.settings)
	d := &difference{before: newState(x, w), targets: &targets{}, objects: []objectChange{{key, before, after}}}
	d.after = d.before.next(x.with(key, before, after), w, d)
	changes := newConcerned(d).changes()
	for _, app := range []string{"edge", "inner"} {
		v := ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=" + app}}
		if !named(changes, v, resourceKey{envoy.RouteType, "http.80"}) {
			t.Errorf("the routes of %s are not concerned", app)
		}
	}
	other := ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=other"}}
	if named(changes, other, resourceKey{envoy.RouteType, "http.80"}) {
		t.Error("the routes of a router that no Gateway selects are concerned")
	}
}
