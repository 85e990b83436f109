// SPDX-License-Identifier: Apache-2.0

// Package view is the data of a ServiceEntry registry for package explain: the objects in its
// stores, converted one by one, and its visible state. It contains no rules. The registry
// implements the rules, and package explain implements them again, independently.
//
// # Concurrency
//
// A View is immutable.
package view

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// View is the input and the visible state of a registry.
type View struct {
	// Shown is the visible state, and Wanted the visible state of a new registry with the same
	// objects.
	Shown, Wanted Shown
	// Entries are the ServiceEntries, the oldest first.
	Entries []*Entry
	// Workloads are the valid workloads, in the order of their selection by entries.
	Workloads []*Workload
	// Ignored returns the reason why any other workload is not valid.
	Ignored func(key registry.WorkloadKey) string
	// Cluster is the cluster of the registry's own workloads.
	Cluster registry.ClusterID
}

// Entry is a ServiceEntry.
type Entry struct {
	Config     *configstore.Config
	Resolution registry.Resolution
	// Selects: endpoints are workloads with all labels of Selector.
	Selects  bool
	Selector registry.Labels
	Hosts    []Host
	// Sources are what gives endpoints to all of the hosts, in order.
	Sources []Source
}

// Host is one host of an entry.
type Host struct {
	Hostname registry.Hostname
	// Services holds one for each address.
	Services []*registry.Service
	// Self are the endpoints of a host that is its own endpoint, one for each port.
	Self []registry.Endpoint
}

// Source is where endpoints of an entry come from.
type Source struct {
	// Workload is the one that the entry selects; nil for an endpoint that is written
	// in the entry, at a position.
	Workload *Workload
	Position int
	// Endpoints holds one for each port of the entry.
	Endpoints []registry.Endpoint
}

// Workload is what entries may select.
type Workload struct {
	Key registry.WorkloadKey
	// Endpoint is that of the workload, without a port.
	Endpoint registry.Endpoint
	// Ports are the workload's ports by service port name.
	Ports map[string]uint32
	// NeedsDNS: only entries that are resolved by DNS can use the address.
	NeedsDNS bool
}

// Shown is what readers see.
type Shown struct {
	Services []*registry.Service
	Hosts    []HostEndpoints
	// Instances are those at each address.
	Instances map[string][]registry.ServiceInstance
}

// HostEndpoints is the endpoints of a host name in a namespace.
type HostEndpoints struct {
	Namespace string
	Hostname  registry.Hostname
	Endpoints []*registry.Endpoint
}
