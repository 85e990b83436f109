// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Services implements registry.ServiceDiscovery. The slice is built once after each change.
func (c *Controller) Services() []*registry.Service { return c.publisher.State().services.List() }

// ServiceSnapshot implements registry.ServiceSnapshotter.
func (c *Controller) ServiceSnapshot() *registry.ServiceSet { return c.publisher.State().services }

// ServicesAt implements xdsupdate.RootReader.
func (c *Controller) ServicesAt(discovery registry.ServiceSnapshotter, root *xdsupdate.Root) (*registry.ServiceSet, bool) {
	if discovery != c {
		return nil, false
	}
	return c.publisher.ServicesAt(root)
}

// GetService implements registry.ServiceDiscovery.
func (c *Controller) GetService(hostname registry.Hostname) *registry.Service {
	return c.publisher.State().services.Get(hostname)
}

// InstancesByPort implements registry.ServiceDiscovery. An endpoint with a port name that the
// service lacks gives no instance.
func (c *Controller) InstancesByPort(service *registry.Service, servicePort uint32) []*registry.ServiceInstance {
	if service == nil {
		return nil
	}
	v, ok := c.publisher.State().hosts.Get(service.Hostname)
	if !ok || v.service.Attributes.Namespace != service.Attributes.Namespace {
		return nil
	}
	var out []*registry.ServiceInstance
	for ep := range v.endpoints.All() {
		p := v.service.PortByName(ep.ServicePortName)
		if p != nil && (servicePort == 0 || p.Number == servicePort) {
			out = append(out, &registry.ServiceInstance{Service: v.service, ServicePort: p, Endpoint: ep})
		}
	}
	return out
}

// NetworkGateways implements registry.ServiceDiscovery.
func (c *Controller) NetworkGateways() []registry.NetworkGateway { return c.publisher.State().gateways }

// NetworkOf returns the network of an address of a workload in this cluster: that of its label, or
// else of the cluster, or else of the range that contains the address; "" if there is none. The
// result depends on the mesh and the system namespace.
func (c *Controller) NetworkOf(address string, labels registry.Labels) string {
	s := c.publisher.State()
	e := engine{mesh: s.mesh, network: s.network}
	return e.networkOf(address, labels)
}
