// SPDX-License-Identifier: Apache-2.0

package ads

import "github.com/pilotkit/pilotkit/registry"

// noServices is a discovery without services.
type noServices struct{}

var _ registry.ServiceDiscovery = noServices{}

// Services returns nil.
func (noServices) Services() []*registry.Service { return nil }

// ServiceSnapshot returns an empty set.
func (noServices) ServiceSnapshot() *registry.ServiceSet { return &registry.ServiceSet{} }

// GetService returns nil.
func (noServices) GetService(registry.Hostname) *registry.Service { return nil }

// InstancesByPort returns nil.
func (noServices) InstancesByPort(*registry.Service, uint32) []*registry.ServiceInstance { return nil }

// GetProxyServiceInstances returns nil.
func (noServices) GetProxyServiceInstances(*registry.Proxy) []*registry.ServiceInstance { return nil }

// GetProxyWorkloadLabels returns nil: the workload is not known.
func (noServices) GetProxyWorkloadLabels(*registry.Proxy) registry.Labels { return nil }

// NetworkGateways returns nil.
func (noServices) NetworkGateways() []registry.NetworkGateway { return nil }

// AppendNetworkGatewayHandler does nothing.
func (noServices) AppendNetworkGatewayHandler(func()) {}
