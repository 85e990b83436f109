// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// startAggregate creates the other registries and the aggregate of all. opts are
// those of the main registry.
func (sys *system) startAggregate(opts serviceentry.Options) {
	sys.aggregate = aggregate.NewController(aggregate.Options{Updater: sys.updater})
	sys.aggregate.AppendServiceHandler(sys.onService("aggregate"))
	for _, cluster := range sys.scenario.Options.ServiceHandlersForClusters {
		sys.aggregate.AppendServiceHandlerForCluster(registry.ClusterID(cluster), sys.onService("aggregate/"+cluster))
	}
	sys.aggregate.AppendNetworkGatewayHandler(sys.onGateways)
	sys.aggregate.AddRegistry(sys.main)
	for _, spec := range sys.scenario.Registries {
		instance := sys.newRegistry(spec, opts)
		if !spec.Deferred {
			sys.aggregate.AddRegistry(instance)
		}
	}
}
