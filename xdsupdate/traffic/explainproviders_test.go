// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"iter"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// bystander is a provider that provides nothing, and makes something of each proxy.
type bystander struct{ name string }

func (b bystander) Name() string { return b.name }

func (bystander) Attach(xdsupdate.XDSUpdater) {}

func (b bystander) Group(*core.Node, *registry.Proxy) any { return b.name }

func (b bystander) Provide(*ads.PushContext) (ads.Provided, ads.Changes) { return b, ads.Changes{} }

func (bystander) Names(ads.View, string) (iter.Seq[string], bool) { return nil, false }

func (bystander) Covers(ads.View, string, string) (covered, only bool) { return false, false }

func (bystander) Lookup(ads.View, string, string) ads.Answer { return ads.Answer{Next: true} }

// TestExplainWithOtherProviders: what is said of a connected proxy does not depend on which
// other providers its server has, nor on their order.
func TestExplainWithOtherProviders(t *testing.T) {
	objects := objectsOf(t,
		`Gateway infra/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`,
		`VirtualService shop/cart {"hosts": ["cart.example.com"], "gateways": ["infra/edge"], "http": [{"route": [{"destination": {"host": "cart"}}]}]}`,
	)
	edge := in("router", "infra", "app=edge")
	one, two := bystander{"one"}, bystander{"two"}
	for i, order := range []func(traffic ads.Provider) []ads.Provider{
		func(p ads.Provider) []ads.Provider { return []ads.Provider{p} },
		func(p ads.Provider) []ads.Provider { return []ads.Provider{p, one, two} },
		func(p ads.Provider) []ads.Provider { return []ads.Provider{one, p, two} },
		func(p ads.Provider) []ads.Provider { return []ads.Provider{one, two, p} },
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := &scene{t: t, store: storememory.NewController(storememory.Make(lenientSchemas()))}
			s.policies = traffic.New(s.store)
			s.wire(ads.Options{Providers: order(s.policies)})
			s.create(objects)
			s.must(s.kubernetes.SetService(testService("shop", cart, 80)))
			s.store.Drain()
			s.serve()
			s.applied()
			c := s.connect(edge)
			s.must(c.Subscribe(envoy.ClusterType))
			s.answered(c)
			e := s.policies.Explain(s.status(edge).View, traffic.Call{Host: "cart.example.com", Port: 80})
			if e.VirtualService != "shop/cart" || len(e.Destinations) != 1 {
				t.Errorf("a connected gateway:\n%s", e)
			}
		})
	}
}
