// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Services returns all services in the order of registry.CompareServices. It costs nothing if no
// service has changed since the last call.
func (r *Registry) Services() []*registry.Service { return r.publisher.State().services.List() }

// ServiceSnapshot implements registry.ServiceSnapshotter.
func (r *Registry) ServiceSnapshot() *registry.ServiceSet { return r.publisher.State().services }

// ServicesAt implements xdsupdate.RootReader.
func (r *Registry) ServicesAt(discovery registry.ServiceSnapshotter, root *xdsupdate.Root) (*registry.ServiceSet, bool) {
	if discovery != r {
		return nil, false
	}
	return r.publisher.ServicesAt(root)
}

// GetService returns the service of a host name, or nil. Of several services, in different
// namespaces, it returns the first by registry.ComparePrecedence.
func (r *Registry) GetService(hostname registry.Hostname) *registry.Service {
	return r.publisher.State().services.Get(hostname)
}

// InstancesByPort returns the instances of a service on the service port with a number, or on all
// ports for 0, sorted by registry.CompareEndpoints. The service is looked up by host name and
// namespace. An endpoint whose port is not a port of the service gives no instance.
func (r *Registry) InstancesByPort(service *registry.Service, servicePort uint32) []*registry.ServiceInstance {
	if service == nil {
		return nil
	}
	s, k := r.publisher.State(), keyOf(service)
	if service = s.service(k); service == nil {
		return nil
	}
	var out []*registry.ServiceInstance
	for ep := range s.endpointsOf(k).All() {
		if i := instance(service, ep); i != nil && (servicePort == 0 || i.ServicePort.Number == servicePort) {
			out = append(out, i)
		}
	}
	return out
}

// instance returns an endpoint as an instance of the service port that it names, by number or else
// by name. It returns nil if there is no such port.
func instance(s *registry.Service, e *registry.Endpoint) *registry.ServiceInstance {
	port := s.PortByName(e.ServicePortName)
	if e.ServicePort != 0 {
		port = s.Port(e.ServicePort)
	}
	if port == nil {
		return nil
	}
	return &registry.ServiceInstance{Service: s, ServicePort: port, Endpoint: e}
}

// GetProxyServiceInstances returns the instances that run on the proxy's workload: the endpoints
// with one of the proxy's addresses, of services of its namespace if that is known. They are sorted
// by service and endpoint.
func (r *Registry) GetProxyServiceInstances(proxy *registry.Proxy) []*registry.ServiceInstance {
	s := r.publisher.State()
	seen := map[serviceEndpoint]bool{}
	var out []*registry.ServiceInstance
	for _, address := range proxy.IPAddresses {
		endpoints, _ := s.byAddress.Get(address)
		for _, e := range endpoints {
			if seen[e] || proxy.Namespace != "" && e.service.namespace != proxy.Namespace {
				continue
			}
			seen[e] = true
			if i := instance(s.service(e.service), e.endpoint); i != nil {
				out = append(out, i)
			}
		}
	}
	slices.SortFunc(out, func(a, b *registry.ServiceInstance) int {
		if c := registry.CompareServices(a.Service, b.Service); c != 0 {
			return c
		}
		return registry.CompareEndpoints(a.Endpoint, b.Endpoint)
	})
	return out
}

// GetProxyWorkloadLabels returns the labels of the workload with one of the proxy's addresses, nil
// if there is none. Of several workloads it uses the first in the proxy's own namespace, or else
// the first of all, by registry.CompareWorkloads.
func (r *Registry) GetProxyWorkloadLabels(proxy *registry.Proxy) registry.Labels {
	s := r.publisher.State()
	var found []*registry.WorkloadInstance
	for _, address := range proxy.IPAddresses {
		list, _ := s.workloadsByAddress.Get(address)
		found = append(found, list...)
	}
	if len(found) == 0 {
		return nil
	}
	labels := slices.MinFunc(found, func(v, w *registry.WorkloadInstance) int {
		if own := v.Namespace == proxy.Namespace; own != (w.Namespace == proxy.Namespace) {
			if own {
				return -1
			}
			return 1
		}
		return registry.CompareWorkloads(v, w)
	}).Endpoint.Attributes().Labels
	if labels == nil {
		return registry.Labels{}
	}
	return labels
}
