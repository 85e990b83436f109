// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// aggregated is what a scenario needs of the aggregate.
type aggregated interface {
	registry.ServiceDiscovery
	AppendServiceHandler(handler registry.ServiceHandler)
	AppendServiceHandlerForCluster(cluster registry.ClusterID, handler registry.ServiceHandler)
	UnRegisterHandlersForCluster(cluster registry.ClusterID)
	AddRegistry(r registry.Instance)
	UpdateRegistry(r registry.Instance)
	DeleteRegistry(cluster registry.ClusterID, provider registry.ProviderID)
	DeleteRegistryIfCurrent(r registry.Instance) bool
	Registries() []registry.Instance
}

func newAggregate(removed func(xdsupdate.ShardKey)) (aggregated, error) {
	return nil, errors.New("there is no aggregate of registries")
}

// startAggregate creates the other registries and the aggregate of all.
func (sys *system) startAggregate() error {
	var err error
	if sys.aggregate, err = newAggregate(sys.recorder.RemoveShard); err != nil {
		return err
	}
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
	return nil
}
