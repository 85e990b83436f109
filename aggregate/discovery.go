// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// Services implements registry.ServiceDiscovery. It costs nothing as long as no
// registry has changed its services.
func (c *Controller) Services() []*registry.Service { return c.current().services.List() }

// ServiceSnapshot implements registry.ServiceSnapshotter.
func (c *Controller) ServiceSnapshot() *registry.ServiceSet { return c.current().services }

// GetService implements registry.ServiceDiscovery. The answer is one of Services:
// the service of Kubernetes registries if there is one, else that of the first
// registry that has the host name.
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

// GetProxyServiceInstances implements registry.ServiceDiscovery. Kubernetes
// registries are asked for proxies of their own cluster, or if the proxy's is not
// known; the others always.
func (c *Controller) GetProxyServiceInstances(proxy *registry.Proxy) []*registry.ServiceInstance {
	var all []*registry.ServiceInstance
	parts := 0
	for _, reg := range c.merged.Load().serversOf(proxy.ClusterID) {
		all, parts = join(all, parts, reg.instance.GetProxyServiceInstances(proxy))
	}
	return all
}

// join appends part to all. As long as there is only one part it is not copied,
// because it is not ours to change.
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

// GetProxyWorkloadLabels implements registry.ServiceDiscovery: the answer of the
// first registry that knows the proxy, of those that GetProxyServiceInstances
// asks. Those of the proxy's own cluster are asked first: what others know under
// its address may be something else.
func (c *Controller) GetProxyWorkloadLabels(proxy *registry.Proxy) registry.Labels {
	servers := c.merged.Load().serversOf(proxy.ClusterID)
	for _, own := range [...]bool{true, false} {
		for _, reg := range servers {
			if own != (proxy.ClusterID == "" || proxy.ClusterID == reg.shard.Cluster) {
				continue
			}
			if labels := reg.instance.GetProxyWorkloadLabels(proxy); labels != nil {
				return labels
			}
		}
	}
	return nil
}

// NetworkGateways implements registry.ServiceDiscovery: those of all registries,
// each once, in the order of registry.CompareNetworkGateways.
func (c *Controller) NetworkGateways() []registry.NetworkGateway {
	var all []registry.NetworkGateway
	for _, reg := range c.merged.Load().registrations {
		all = append(all, reg.instance.NetworkGateways()...)
	}
	slices.SortFunc(all, registry.CompareNetworkGateways)
	return slices.Compact(all)
}
