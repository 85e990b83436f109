// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/grpc"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestRunAfterSync starts a whole control plane in the way of configstore's package comment: the
// server runs when WaitForSync has returned for its sources, and the first response to a client,
// which has waited for it, has the state of that time.
func TestRunAfterSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loaded atomic.Bool
		configs := memory.NewController(memory.Make(istio.Schemas()))
		configs.RegisterHasSyncedHandler(loaded.Load)
		registries := aggregate.NewController()
		server := ads.New(registries)
		registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })

		g, listener := grpc.NewServer(), network(t)
		server.Register(g)
		conn := dialTo(t, listener)
		c := xdstest.NewClient(conn, xdstest.ClientOptions{Node: node("a", "shop")})
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { _ = g.Serve(listener) })
		running.Go(func() { configs.Run(stop) })
		running.Go(func() { registries.Run(stop) })
		running.Go(func() {
			if err := configstore.WaitForSync(context.Background(), configs, registries); err != nil {
				t.Error(err)
			}
			server.Run(stop)
		})
		if err := c.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Subscribe(envoy.ClusterType); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		check(t, "responses before the configs are loaded", len(c.Responses()), 0)
		for _, host := range []string{"a", "b"} {
			_, err := configstore.Typed[*networking.ServiceEntry](configs).Create(configstore.NewConfig(host, "shop", &networking.ServiceEntry{
				Hosts: []string{host + ".example.com"}, Resolution: networking.ServiceEntry_STATIC,
				Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			}))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		check(t, "responses while they are loaded", len(c.Responses()), 0)
		loaded.Store(true)
		time.Sleep(time.Second)
		check(t, "responses", received(c, 0), []string{"CDS " + cluster("a.example.com"), "CDS " + cluster("b.example.com")})
		close(stop)
		g.Stop()
		running.Wait()
		c.Close()
		_ = conn.Close()
	})
}
