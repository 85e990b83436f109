// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
)

// startAggregate creates the other registries and the aggregate of all.
func (sys *system) startAggregate() {
	sys.aggregate = aggregate.NewController(aggregate.Options{Updater: sys.updater})
	sys.aggregate.AppendServiceHandler(sys.onService("aggregate"))
	for _, cluster := range sys.scenario.Options.ServiceHandlersForClusters {
		sys.aggregate.AppendServiceHandlerForCluster(registry.ClusterID(cluster), sys.onService("aggregate/"+cluster))
	}
	sys.aggregate.AppendNetworkGatewayHandler(sys.onGateways)
	sys.aggregate.AddRegistry(sys.main)
	for _, spec := range sys.scenario.Registries {
		instance := sys.newRegistry(spec)
		if !spec.Deferred {
			sys.aggregate.AddRegistry(instance)
		}
	}
}
