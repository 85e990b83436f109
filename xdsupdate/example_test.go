// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"context"
	"fmt"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// A Pusher stands between registries and whoever sends configuration to proxies.
// A program calls Run; without it, Flush pushes.
func ExamplePusher() {
	var p *xdsupdate.Pusher
	p = xdsupdate.NewPusher(func(r *xdsupdate.PushRequest) {
		fmt.Println(r)
		for _, key := range r.Keys() {
			for e := range p.Index().Service(registry.Hostname(key.Name), key.Namespace).All() {
				fmt.Println(" ", e.Address())
			}
		}
	}, xdsupdate.PusherOptions{})

	shard := xdsupdate.ShardKey{Cluster: "cluster-1", Provider: registry.Memory}
	one := &registry.Endpoint{Addresses: []string{"10.0.0.1"}, EndpointPort: 80}
	two := &registry.Endpoint{Addresses: []string{"10.0.0.2"}, EndpointPort: 80}

	p.EDSUpdate(shard, "api.example.com", "default", []*registry.Endpoint{one})
	_ = p.Flush(context.Background())
	p.EDSDeltaUpdate(shard, "api.example.com", "default", []xdsupdate.EndpointChange{{New: two}})
	_ = p.Flush(context.Background())

	// Output:
	// full push of ServiceEntry/default/api.example.com (endpoint 1)
	//   10.0.0.1
	// endpoint push of ServiceEntry/default/api.example.com (endpoint 1)
	//   10.0.0.1
	//   10.0.0.2
}

// A registry is replaced while it runs: it gets an updater of its own, and so
// does its successor.
func ExampleWriters() {
	p := xdsupdate.NewPusher(func(r *xdsupdate.PushRequest) { fmt.Println(r) }, xdsupdate.PusherOptions{})
	shard := xdsupdate.ShardKey{Cluster: "cluster-1", Provider: registry.Memory}
	endpoints := []*registry.Endpoint{{Addresses: []string{"10.0.0.1"}, EndpointPort: 80}}

	writers := xdsupdate.NewWriters(p)
	was := writers.New()
	was.EDSUpdate(shard, "kept.example.com", "default", endpoints)
	was.EDSUpdate(shard, "gone.example.com", "default", endpoints)

	now := writers.New()
	now.EDSUpdate(shard, "kept.example.com", "default", endpoints)
	was.EDSUpdate(shard, "kept.example.com", "default", nil) // has no effect any more
	now.Complete()                                           // the successor has synced

	for view := range p.Index().All() {
		fmt.Println(view.Hostname(), view.Len())
	}
	// Output:
	// kept.example.com 1
}
