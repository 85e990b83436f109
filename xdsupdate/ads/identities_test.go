// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestIdentitiesInAPushOfEndpoints: a push of endpoints has read identities that the full
// push, which was asked for because of them, is to bring: clients are sent them.
func TestIdentitiesInAPushOfEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		discovery := &services{}
		discovery.set(service("a", "shop"))
		f := serveServer(t, ads.New(discovery, ads.Options{Debounce: xdsupdate.Debounce{After: time.Second}}))
		first, other := endpoint("10.0.0.1", 80), endpoint("10.0.0.2", 80)
		f.eds("a", "shop", first)
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		f.eds("a", "shop", first, other) // a push of endpoints
		withAccount := endpoint("10.0.0.3", 80)
		withAccount.Shared = &registry.EndpointAttributes{ServiceAccount: "spiffe://a"}
		f.eds("a", "shop", first, other, withAccount) // a full push, later
		time.Sleep(time.Minute)
		f.waitApplied()
		m, err := c.State().Resources(envoy.ClusterType)[cluster("a")].Message()
		if err != nil {
			t.Fatal(err)
		}
		metadata := m.(*clusterv3.Cluster).GetMetadata().GetFilterMetadata()["pilotkit"].AsMap()
		check(t, "identities", metadata, map[string]any{"subject_alt_names": []any{"spiffe://a"}})
	})
}
