// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"context"
	"fmt"
	"iter"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/randomobjects"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/registry"
	services "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// Plane has the resources for gateways by objects, which nobody validates, and services.
type Plane struct {
	*traffic.Policies
	provided ads.Provided
}

// Provide implements ads.Provider.
func (p *Plane) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	provided, changes := p.Policies.Provide(push)
	p.provided = provided
	return provided, changes
}

// NewPlane returns the state after one push.
func NewPlane(ctx context.Context, objects []configstore.Config, list []*registry.Service) (*Plane, error) {
	configs := memory.NewController(memory.Make(randomobjects.Unvalidated()))
	for _, c := range objects {
		c.ResourceVersion = ""
		if _, err := configs.Create(c); err != nil {
			return nil, err
		}
	}
	p := &Plane{Policies: traffic.New(configs)}
	registries := aggregate.NewController()
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{p}})
	var failed error
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		r := services.New(services.Options{Updater: updater, Provider: registry.Kubernetes})
		for _, s := range list {
			failed = r.SetService(s)
		}
		return r
	})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
	configs.Drain()
	if failed != nil {
		return nil, failed
	}
	return p, server.Flush(ctx)
}

// Sent returns the resources for a gateway. Of its clusters it has the names only.
func (p *Plane) Sent(proxy *registry.Proxy) (Sent, error) {
	view := ads.PlainView(proxy, envoy.ForEnvoy)
	view.Policy = p.Group(&core.Node{Id: "router~"}, proxy)
	out := Sent{envoy.ListenerType: {}, envoy.RouteType: {}, envoy.ClusterType: {}}
	names := func(typeURL string) iter.Seq[string] {
		list, _ := p.provided.Names(view, typeURL)
		return list
	}
	for name := range names(envoy.ClusterType) {
		out[envoy.ClusterType][name] = &clusterv3.Cluster{}
	}
	for name := range names(envoy.ListenerType) {
		m, err := build(p.provided.Lookup(view, envoy.ListenerType, name))
		if err != nil {
			return nil, fmt.Errorf("listener %s: %w", name, err)
		}
		if m == nil { // it has no filter chain
			continue
		}
		out[envoy.ListenerType][name] = m
		for _, routes := range routesim.RoutesOf(m.(*listenerv3.Listener)) {
			if out[envoy.RouteType][routes], err = build(p.provided.Lookup(view, envoy.RouteType, routes)); err != nil {
				return nil, fmt.Errorf("routes %s: %w", routes, err)
			}
		}
	}
	return out, nil
}

func build(a ads.Answer) (proto.Message, error) {
	if a.Build == nil {
		return nil, fmt.Errorf("nothing is built")
	}
	m, err := a.Build()
	if m != nil {
		err = nil // it describes parts that were left out
	}
	return m, err
}
