// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"iter"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// state is the published state. It is immutable: a batch creates another one, which shares the
// unchanged parts.
type state struct {
	services *registry.ServiceSet
	hosts    pmap.Map[registry.Hostname, *hostView]
	pods     pmap.Map[objectKey, podValue]
	// holders and workloadsAt find usable pods, slices, and workloads of other registries by an
	// address.
	holders     pmap.Map[string, holders]
	workloadsAt pmap.Map[string, []*registry.WorkloadInstance]
	// selectors finds services by a label of their selectors.
	selectors pmap.Map[labelPair, []*host]
	gateways  []registry.NetworkGateway
	// mesh and network determine the networks of addresses.
	mesh    *mesh
	network string
}

// snapshot returns the state after a batch.
func (e *engine) snapshot(prev *state) *state {
	next := &state{
		services: prev.services, hosts: e.hosts.Snapshot(), pods: e.pods.Snapshot(), holders: e.holders.Snapshot(),
		workloadsAt: e.workloadsAt.Snapshot(), selectors: e.selectors.Snapshot(),
		gateways: e.gateways, mesh: e.mesh, network: e.network,
	}
	if hosts := e.batch.hosts; modelsChanged(hosts) {
		next.services = prev.services.WithHosts(changedServices(hosts))
	}
	return next
}

func modelsChanged(hosts []*host) bool {
	for range changedServices(hosts) {
		return true
	}
	return false
}

// changedServices yields the host names whose service changed, with the new service.
func changedServices(hosts []*host) iter.Seq2[registry.Hostname, []*registry.Service] {
	return func(yield func(registry.Hostname, []*registry.Service) bool) {
		for _, h := range hosts {
			if serviceOf(h.work.before) == serviceOf(h.view) {
				continue
			}
			var list []*registry.Service
			if h.view != nil {
				list = []*registry.Service{h.view.service}
			}
			if !yield(h.hostname, list) {
				return
			}
		}
	}
}

func serviceOf(v *hostView) *registry.Service {
	if v == nil {
		return nil
	}
	return v.service
}
