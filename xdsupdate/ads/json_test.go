// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// group is a group of a program's own, without JSON.
type group struct{ notify chan struct{} }

func (group) String() string { return "gold" }

const statusJSON = `{
 "id": "sidecar~10.0.0.1~a.shop~shop.svc",
 "view": {
  "namespace": "shop",
  "cluster": "east",
  "addresses": {
   "ipv4": true,
   "ipv6": false,
   "allocated": false
  },
  "client": "gRPC",
  "policy": "gold"
 },
 "ip_addresses": [
  "10.0.0.1"
 ],
 "delta": true,
 "types": {
  "type.googleapis.com/envoy.config.route.v3.RouteConfiguration": {
   "wildcard": false,
   "names": 2,
   "sent": "b",
   "acked": "a",
   "pending": true,
   "overdue": true,
   "rejections": 3
  }
 }
}`

// TestProxyStatusJSON: readers depend on the names of the fields, times and kinds are words, and no
// value that a program puts into a view keeps the other fields from being shown.
func TestProxyStatusJSON(t *testing.T) {
	status := ads.ProxyStatus{
		ID: "sidecar~10.0.0.1~a.shop~shop.svc", IPAddresses: []string{"10.0.0.1"}, Delta: true,
		View: ads.View{
			Namespace: "shop", Cluster: "east", Addresses: ads.Addresses{IPv4: true}, Client: envoy.ForGRPC,
			Policy: group{make(chan struct{})},
		},
		Types: map[string]ads.TypeStatus{envoy.RouteType: {
			Names: 2, Sent: "b", Acked: "a", Pending: true, Overdue: true, Rejections: 3,
		}},
	}
	got, err := json.MarshalIndent(status, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(statusJSON, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// TestProxiesJSON: the state of the proxies of a server has JSON, for groups of any type.
func TestProxiesJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{Providers: []ads.Provider{grouping{group: func(*core.Node, *registry.Proxy) any { return group{} }}}}, service("a", "shop"))
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		f.waitApplied()
		got, err := json.Marshal(f.Proxies())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`"id":"` + node("a", "shop").GetId() + `"`, `"client":"Envoy"`, `"policy":"gold"`, `"pending":false`, `"wildcard":true`,
		} {
			if !bytes.Contains(got, []byte(want)) {
				t.Errorf("%s is not in %s", want, got)
			}
		}
	})
}
