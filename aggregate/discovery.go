// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// Services implements registry.ServiceDiscovery. Without a change of services in the registries, it
// returns the same slice.
func (c *Controller) Services() []*registry.Service { return c.current().services.List() }

// ServiceSnapshot implements registry.ServiceSnapshotter.
func (c *Controller) ServiceSnapshot() *registry.ServiceSet { return c.current().services }

// GetService implements registry.ServiceDiscovery. The result is an element of Services: the merged
// service of the Kubernetes registries if there is one, else the service of the first registry with
// that host name.
func (c *Controller) GetService(hostname registry.Hostname) *registry.Service {
	return c.current().services.Get(hostname)
}

// InstancesByPort implements registry.ServiceDiscovery.
func (c *Controller) InstancesByPort(svc *registry.Service, servicePort uint32) []*registry.ServiceInstance {
	var all []*registry.ServiceInstance
	parts := 0
	for _, reg := range c.merged.Load().registrations {
		all, parts = join(all, parts, reg.instance.InstancesByPort(svc, servicePort))
	}
	if parts > 1 {
		slices.SortStableFunc(all, func(a, b *registry.ServiceInstance) int {
			return registry.CompareEndpoints(a.Endpoint, b.Endpoint)
		})
	}
	return all
}

// GetProxyServiceInstances implements registry.ServiceDiscovery. It queries the Kubernetes
// registries of the proxy's cluster, or all of them if the cluster is unknown, and every other
// registry.
func (c *Controller) GetProxyServiceInstances(proxy *registry.Proxy) []*registry.ServiceInstance {
	var all []*registry.ServiceInstance
	parts := 0
	for _, reg := range c.merged.Load().registrations {
		if reg.serves(proxy.ClusterID) {
			all, parts = join(all, parts, reg.instance.GetProxyServiceInstances(proxy))
		}
	}
	return all
}

// join appends part to all. It does not copy a single part. With a second part it copies, because
// the slices belong to the registries.
func join(all []*registry.ServiceInstance, parts int, part []*registry.ServiceInstance) ([]*registry.ServiceInstance, int) {
	switch {
	case len(part) == 0:
		return all, parts
	case parts == 0:
		return part, 1
	case parts == 1:
		all = slices.Clip(all)
	}
	return append(all, part...), parts + 1
}

// GetProxyWorkloadLabels implements registry.ServiceDiscovery. It queries the same registries as
// GetProxyServiceInstances and returns the labels from the first registry that knows the proxy.
// Registries of the proxy's own cluster are queried first, because another registry may have a
// different workload with the same address.
func (c *Controller) GetProxyWorkloadLabels(proxy *registry.Proxy) registry.Labels {
	registrations := c.merged.Load().registrations
	for _, own := range [...]bool{true, false} {
		for _, reg := range registrations {
			if !reg.serves(proxy.ClusterID) || own != (proxy.ClusterID == "" || proxy.ClusterID == reg.shard.Cluster) {
				continue
			}
			if labels := reg.instance.GetProxyWorkloadLabels(proxy); labels != nil {
				return labels
			}
		}
	}
	return nil
}

// NetworkGateways implements registry.ServiceDiscovery. It returns the distinct gateways of all
// registries, sorted by registry.CompareNetworkGateways.
func (c *Controller) NetworkGateways() []registry.NetworkGateway {
	var all []registry.NetworkGateway
	for _, reg := range c.merged.Load().registrations {
		all = append(all, reg.instance.NetworkGateways()...)
	}
	slices.SortFunc(all, registry.CompareNetworkGateways)
	return slices.Compact(all)
}
