// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	memoryregistry "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Defaults are hidden by what a user writes, and come back when that is deleted.
func ExampleMakeWriteableCache() {
	kind := configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}
	kinds := configstore.NewSchemasBuilder().MustAdd(configstore.Schema{GroupVersionKind: kind, Spec: &structpb.Value{}}).Build()
	limit := func(n float64) configstore.Config {
		return configstore.Config{
			Meta: configstore.Meta{GroupVersionKind: kind, Namespace: "default", Name: "requests"},
			Spec: structpb.NewNumberValue(n),
		}
	}
	value := func(c *configstore.Config) any {
		spec, ok := c.Spec.(*structpb.Value)
		if !ok {
			return "no number"
		}
		return spec.GetNumberValue()
	}
	user, defaults := memory.NewController(memory.Make(kinds)), memory.NewController(memory.Make(kinds))
	if _, err := defaults.Create(limit(10)); err != nil {
		fmt.Println(err)
	}

	cache := aggregate.MakeWriteableCache([]configstore.ConfigStoreCache{user, defaults}, user)
	cache.RegisterEventHandler(kind, func(_, curr configstore.Config, event configstore.Event) {
		fmt.Println(event, value(&curr))
	})
	if _, err := cache.Create(limit(50)); err != nil {
		fmt.Println(err)
	}
	fmt.Println("read", value(cache.Get(kind, "requests", "default")))
	if err := cache.Delete(kind, "requests", "default", nil); err != nil {
		fmt.Println(err)
	}
	cache.Drain()
	// Output:
	// read 50
	// add 10
	// update 50
	// update 10
}

// A service of two clusters, of which one goes. What its registry has written to
// the updater goes with it.
func ExampleController() {
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {})
	c := aggregate.NewController(aggregate.Options{Updater: pusher})
	host := registry.Hostname("shop.default.svc.cluster.local")
	endpoints := func() (n int) {
		for range pusher.Index().Service(host, "default").All() {
			n++
		}
		return n
	}
	for _, cluster := range []registry.ClusterID{"east", "west"} {
		c.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
			r := memoryregistry.New(memoryregistry.Options{Provider: registry.Kubernetes, Cluster: cluster, Updater: updater})
			service := &registry.Service{
				Hostname:    host,
				Ports:       []*registry.Port{{Number: 80, Protocol: registry.ProtocolHTTP}},
				ClusterVIPs: map[registry.ClusterID][]string{cluster: {"vip-of-" + string(cluster)}},
				Attributes:  registry.ServiceAttributes{Namespace: "default"},
			}
			endpoint := &registry.Endpoint{Addresses: []string{"10.0.0.1"}, ServicePort: 80, EndpointPort: 8080}
			if err := errors.Join(r.SetService(service), r.AddEndpoint(host, "default", endpoint)); err != nil {
				fmt.Println(err)
			}
			return r
		})
	}
	fmt.Println(c.GetService(host).ClusterVIPs, endpoints())
	c.DeleteRegistry("east", registry.Kubernetes)
	fmt.Println(c.GetService(host).ClusterVIPs, endpoints())
	// Output:
	// map[east:[vip-of-east] west:[vip-of-west]] 2
	// map[west:[vip-of-west]] 1
}
