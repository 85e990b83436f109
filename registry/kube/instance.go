// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"

	"github.com/pilotkit/pilotkit/registry"
)

// shown returns the pod if handlers see it, nil otherwise.
func shown(s *podEntry) *podEntry {
	if s == nil || !s.Value.usable() {
		return nil
	}
	return s
}

// workloadEndpoint returns a pod that handlers see as an endpoint without a port.
func (e *engine) workloadEndpoint(s *podEntry) registry.Endpoint {
	addresses := s.Value.addresses
	if !e.options.DualStack {
		addresses = addresses[:1:1]
	}
	return registry.Endpoint{
		Addresses: addresses, HealthStatus: registry.Healthy, WorkloadName: s.Value.template.workload, Shared: s.Value.attributes,
	}
}

// instanceOf returns a pod as handlers see it, nil if they do not see it.
func (e *engine) instanceOf(s *podEntry) *registry.WorkloadInstance {
	if shown(s) == nil {
		return nil
	}
	endpoint := e.workloadEndpoint(s)
	return &registry.WorkloadInstance{
		Cluster: e.options.ClusterID, Kind: registry.Pod, Namespace: s.Key.namespace, Name: s.Key.name,
		PortMap: s.Value.template.portMap(), Endpoint: &endpoint,
	}
}

// sameInstance reports whether two states of a pod, both visible to handlers, look equal to them.
func (e *engine) sameInstance(a, b *podEntry) bool {
	p, q := e.workloadEndpoint(a), e.workloadEndpoint(b)
	s, t := a.Value.template, b.Value.template
	return p.Equal(&q) && (s == t || maps.Equal(s.portMap(), t.portMap()))
}
