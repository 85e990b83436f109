// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"testing"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// benchAuthorization is one of ten policies of a namespace.
func benchAuthorization(i, namespaces, change int) configstore.Config {
	c := benchObject(istio.AuthorizationPolicy, i, "a", &security.AuthorizationPolicy{
		Action: security.AuthorizationPolicy_DENY,
		Rules: []*security.Rule{{
			From: []*security.Rule_From{{Source: &security.Source{NotNamespaces: []string{fmt.Sprintf("client%d", i)}}}},
			To:   []*security.Rule_To{{Operation: &security.Operation{Paths: []string{fmt.Sprintf("/admin%d", change%2)}}}},
		}},
	})
	c.Namespace = fmt.Sprintf("ns%d", i%namespaces)
	return c
}

// BenchmarkAuthorizationChange measures from the change of a policy to the answers of the 10 routers of its
// namespace, of 1,000 that are connected, beside ten policies for each namespace.
func BenchmarkAuthorizationChange(b *testing.B) {
	for _, policies := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("policies=%d", policies), func(b *testing.B) {
			namespaces := policies / 10
			x := &bench{b: b, store: storememory.NewController(storememory.Make(istio.Schemas()))}
			create := func(c configstore.Config) {
				if _, err := x.store.Create(c); err != nil {
					b.Fatal(err)
				}
			}
			create(benchGateway(0))
			for i := range policies {
				create(benchAuthorization(i, namespaces, 0))
			}
			x.server = ads.New(aggregate.NewController(), ads.Options{
				Providers: []ads.Provider{traffic.New(x.store)}, Pusher: xdsupdate.PusherOptions{DebounceAfter: -1},
			})
			x.store.Drain()
			x.serve()
			for i := range 1000 {
				x.connect(i, "router", fmt.Sprintf("ns%d", i%100), map[string]any{"app": "edge"}, map[string][]string{envoy.ListenerType: {"*"}})
			}
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				x.update(benchAuthorization(7, namespaces, n))
			}
		})
	}
}
