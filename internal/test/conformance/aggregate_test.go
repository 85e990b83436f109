// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// staticRegistry finds proxies by address only, regardless of their namespace, as README.md
// specifies for static registries.
type staticRegistry struct{ *memory.Registry }

func (r staticRegistry) GetProxyServiceInstances(proxy *registry.Proxy) []*registry.ServiceInstance {
	anywhere := *proxy
	anywhere.Namespace = ""
	return r.Registry.GetProxyServiceInstances(&anywhere)
}

// startAggregate creates the other registries and the aggregate of all. opts are the options of the
// main registry.
func (sys *system) startAggregate(opts serviceentry.Options) {
	sys.aggregate = aggregate.NewController(aggregate.Options{Updater: sys.updater})
	sys.aggregate.AppendServiceHandler(sys.onService("aggregate"))
	for _, cluster := range sys.scenario.Options.ServiceHandlersForClusters {
		sys.aggregate.AppendServiceHandlerForCluster(registry.ClusterID(cluster), sys.onService("aggregate/"+cluster))
	}
	sys.aggregate.AppendNetworkGatewayHandler(sys.onGateways)
	sys.aggregate.AddRegistry(given(sys.main))
	for _, spec := range sys.scenario.Registries {
		instance := sys.newRegistry(spec, opts)
		if !spec.Deferred {
			sys.aggregate.AddRegistry(given(instance))
		}
	}
}

// given returns a function for AddRegistry that returns a registry which has its
// updater already.
func given(r registry.Instance) func(xdsupdate.XDSUpdater) registry.Instance {
	return func(xdsupdate.XDSUpdater) registry.Instance { return r }
}
