// SPDX-License-Identifier: Apache-2.0

package services

import "github.com/pilotkit/pilotkit/registry"

// None is a discovery without services.
type None struct{}

var _ registry.ServiceDiscovery = None{}

// Services returns nil.
func (None) Services() []*registry.Service { return nil }

// ServiceSnapshot returns an empty set.
func (None) ServiceSnapshot() *registry.ServiceSet { return &registry.ServiceSet{} }

// GetService returns nil.
func (None) GetService(registry.Hostname) *registry.Service { return nil }

// InstancesByPort returns nil.
func (None) InstancesByPort(*registry.Service, uint32) []*registry.ServiceInstance { return nil }

// GetProxyServiceInstances returns nil.
func (None) GetProxyServiceInstances(*registry.Proxy) []*registry.ServiceInstance { return nil }

// GetProxyWorkloadLabels returns nil: the workload is not known.
func (None) GetProxyWorkloadLabels(*registry.Proxy) registry.Labels { return nil }

// NetworkGateways returns nil.
func (None) NetworkGateways() []registry.NetworkGateway { return nil }

// AppendNetworkGatewayHandler does nothing.
func (None) AppendNetworkGatewayHandler(func()) {}
