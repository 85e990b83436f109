// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
)

// GetProxyServiceInstances implements registry.ServiceDiscovery. The workload of a proxy is, in
// this order:
//
//   - the workload of another registry that has one of the proxy's addresses, in the proxy's own
//     namespace if that is known;
//   - the pod that the proxy's ID names, or with Options.FindProxiesByAddress the pod with one of the
//     proxy's addresses. It is an instance of the services that select the pod, or else of the
//     services in the proxy's namespace with an endpoint at one of the proxy's addresses;
//   - the workload that the proxy claims to be, with its labels and declared ports.
//
// If several ports of a service have one target port and one protocol, only the first gives an
// instance.
func (c *Controller) GetProxyServiceInstances(proxy *registry.Proxy) []*registry.ServiceInstance {
	if proxy.ClusterID != "" && c.options.ClusterID != "" && proxy.ClusterID != c.options.ClusterID {
		return nil
	}
	s := c.publisher.State()
	if w := s.workloadOf(proxy); w != nil {
		return s.workloadInstances(w)
	}
	if p := c.podOf(s, proxy); p != nil {
		if hosts := s.selecting(p.Key.namespace, p.Value.template.labels); len(hosts) > 0 {
			return selectedInstances(hosts, podEndpoint(p, proxy), p.Value.template.portOf)
		}
		return s.instancesAt(proxy, cmp.Or(proxy.Namespace, p.Key.namespace))
	}
	if len(proxy.Labels) == 0 {
		return nil
	}
	hosts := s.selecting(proxy.Namespace, proxy.Labels)
	return selectedInstances(hosts, &registry.Endpoint{
		Addresses: proxy.IPAddresses,
		Shared: &registry.EndpointAttributes{
			Labels: proxy.Labels, Namespace: proxy.Namespace, ClusterID: c.options.ClusterID, Network: proxy.Network,
			Locality: proxy.Locality, NodeName: proxy.NodeName,
		},
	}, declaredPorts(proxy))
}

// GetProxyWorkloadLabels implements registry.ServiceDiscovery. Only pods have labels here. The
// topology labels follow the current state of the node.
func (c *Controller) GetProxyWorkloadLabels(proxy *registry.Proxy) registry.Labels {
	if proxy.ClusterID != "" && c.options.ClusterID != "" && proxy.ClusterID != c.options.ClusterID {
		return nil
	}
	p := c.podOf(c.publisher.State(), proxy)
	if p == nil {
		return nil
	}
	labels := p.Value.attributes.Labels
	if p.Value.attributes.NodeName == "" && proxy.NodeName != "" {
		labels = maps.Clone(labels)
		labels[topo.Node] = proxy.NodeName
	}
	return labels
}

// podOf returns the pod of a proxy, or nil.
func (c *Controller) podOf(s *state, proxy *registry.Proxy) *podEntry {
	if k, ok := podKeyOf(proxy.ID); ok {
		if p := s.pods.Entry(k); p != nil {
			return p
		}
	}
	if !c.options.FindProxiesByAddress {
		return nil
	}
	var found []*podEntry
	for _, a := range proxy.IPAddresses {
		at, _ := s.holders.Get(a)
		for n := range at.pods.all {
			if p := s.pods.Entry(n.key()); p != nil {
				found = append(found, p)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *podEntry) int {
		own, other := a.Key.namespace == proxy.Namespace, b.Key.namespace == proxy.Namespace
		switch {
		case own == other:
			return a.Key.compare(b.Key)
		case own:
			return -1
		default:
			return 1
		}
	})
}

// podKeyOf returns the pod that a proxy's ID names: "name.namespace", alone or as the third part of
// "type~ip~name.namespace~domain". A name may contain dots.
func podKeyOf(id string) (objectKey, bool) {
	if parts := strings.Split(id, "~"); len(parts) == 4 {
		id = parts[2]
	}
	i := strings.LastIndexByte(id, '.')
	if i <= 0 || i == len(id)-1 {
		return objectKey{}, false
	}
	return objectKey{namespace: id[i+1:], name: id[:i]}, true
}

// workloadOf returns the proxy's workload in another registry, or nil. Of several workloads it
// returns the one with the proxy's name, or else the first by registry.CompareWorkloads.
func (s *state) workloadOf(proxy *registry.Proxy) *registry.WorkloadInstance {
	var found []*registry.WorkloadInstance
	for _, a := range proxy.IPAddresses {
		l, _ := s.workloadsAt.Get(a)
		for _, w := range l {
			if proxy.Namespace == "" || w.Namespace == proxy.Namespace {
				found = append(found, w)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	k, _ := podKeyOf(proxy.ID)
	return slices.MinFunc(found, func(v, w *registry.WorkloadInstance) int {
		named, other := k == objectKey{v.Namespace, v.Name}, k == objectKey{w.Namespace, w.Name}
		switch {
		case named == other:
			return registry.CompareWorkloads(v, w)
		case named:
			return -1
		default:
			return 1
		}
	})
}

// selecting returns the services that select labels, by host name.
func (s *state) selecting(namespace string, labels registry.Labels) []*hostView {
	var out []*hostView
	for key, value := range labels {
		l, _ := s.selectors.Get(labelPair{namespace, key, value})
		for _, h := range l {
			if v, ok := s.hosts.Get(h.hostname); ok && v.object.selector.SubsetOf(labels) {
				out = append(out, v)
			}
		}
	}
	slices.SortFunc(out, func(a, b *hostView) int { return registry.CompareServices(a.service, b.service) })
	return out
}

func (s *state) workloadInstances(w *registry.WorkloadInstance) []*registry.ServiceInstance {
	var out []*registry.ServiceInstance
	for _, v := range s.selecting(w.Namespace, w.Endpoint.Attributes().Labels) {
		if v.object.resolution() != registry.ClientSideLB {
			continue
		}
		for _, ep := range workloadEndpoints(v.object, w) {
			if p := v.service.PortByName(ep.ServicePortName); p != nil {
				out = append(out, &registry.ServiceInstance{Service: v.service, ServicePort: p, Endpoint: ep})
			}
		}
	}
	return out
}

// podEndpoint returns a pod as an endpoint without a port.
func podEndpoint(p *podEntry, proxy *registry.Proxy) *registry.Endpoint {
	addresses := p.Value.addresses
	if len(addresses) == 0 {
		addresses = proxy.IPAddresses
	}
	return &registry.Endpoint{
		Addresses: addresses, HealthStatus: registry.Healthy, WorkloadName: p.Value.template.workload, Shared: p.Value.attributes,
	}
}

// selectedInstances returns the instances of a workload that services select, once for each target
// port. Ports that portOf does not find are omitted.
func selectedInstances(hosts []*hostView, workload *registry.Endpoint, portOf func(servicePort) (uint32, bool)) []*registry.ServiceInstance {
	type target struct {
		port     uint32
		protocol registry.Protocol
	}
	var out []*registry.ServiceInstance
	for _, v := range hosts {
		seen := map[target]bool{}
		for _, p := range v.object.ports {
			sp := v.service.PortByName(p.name)
			number, ok := portOf(p)
			if sp == nil || !ok || seen[target{number, sp.Protocol}] {
				continue
			}
			seen[target{number, sp.Protocol}] = true
			ep := *workload
			ep.EndpointPort, ep.ServicePortName = number, p.name
			out = append(out, &registry.ServiceInstance{Service: v.service, ServicePort: sp, Endpoint: &ep})
		}
	}
	return out
}

// portOf returns the target port of a service port in a pod.
func (t *podTemplate) portOf(sp servicePort) (uint32, bool) { return namedPort(sp, t.ports) }

// declaredPorts returns a lookup in the ports that a proxy declares for its workload.
func declaredPorts(proxy *registry.Proxy) func(servicePort) (uint32, bool) {
	return func(sp servicePort) (uint32, bool) { return namedPort(sp, proxy.WorkloadPorts) }
}

func namedPort(sp servicePort, ports []registry.WorkloadPort) (uint32, bool) {
	if sp.targetName == "" {
		return sp.target, true
	}
	for _, p := range ports {
		if p.Name == sp.targetName && p.Protocol == sp.transport {
			return p.Number, true
		}
	}
	return 0, false
}

// instancesAt returns the instances of the services of a namespace that have an endpoint of a slice
// at one of the addresses of a proxy.
func (s *state) instancesAt(proxy *registry.Proxy, namespace string) []*registry.ServiceInstance {
	var hosts []registry.Hostname
	for _, a := range proxy.IPAddresses {
		at, _ := s.holders.Get(a)
		for n := range at.slices.all {
			if n.host.namespace == namespace {
				hosts = append(hosts, n.host.hostname)
			}
		}
	}
	slices.Sort(hosts)
	var out []*registry.ServiceInstance
	for _, hostname := range slices.Compact(hosts) {
		v, ok := s.hosts.Get(hostname)
		if !ok {
			continue
		}
		for ep := range v.endpoints.All() {
			p := v.service.PortByName(ep.ServicePortName)
			if p != nil && slices.ContainsFunc(ep.Addresses, func(a string) bool { return slices.Contains(proxy.IPAddresses, a) }) {
				out = append(out, &registry.ServiceInstance{Service: v.service, ServicePort: p, Endpoint: ep})
			}
		}
	}
	return out
}
