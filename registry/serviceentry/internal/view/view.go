// SPDX-License-Identifier: Apache-2.0

// Package view has what package explain reads of a registry of ServiceEntries: the
// objects of its stores, converted one by one, and what the registry shows. It is
// data without rules; the rules by which the one leads to the other are in the
// registry and, once more and independently, in package explain.
//
// # Concurrency
//
// A View is immutable.
package view

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// View is what a registry is made from, and what it shows.
type View struct {
	// Entries are the ServiceEntries, the oldest first.
	Entries []*Entry
	// Workloads are those that count, in the order in which entries select them.
	Workloads []*Workload
	// Ignored says why a workload that is not one of those does not count.
	Ignored func(key registry.WorkloadKey) string
	// Cluster is that of the registry's own workloads.
	Cluster registry.ClusterID
	Shown   Shown
}

// Entry is a ServiceEntry.
type Entry struct {
	Config     *configstore.Config
	Resolution registry.Resolution
	Ports      []*registry.Port
	// Selects: endpoints are workloads with all labels of Selector.
	Selects  bool
	Selector registry.Labels
	// HostIsEndpoint: each host is resolved itself.
	HostIsEndpoint bool
	Hosts          []Host
	// Inline holds the endpoints that are written in the entry, by position, one
	// for each port; nil for a position that does not count.
	Inline [][]registry.Endpoint
	// Self returns the endpoints for a host that is its own endpoint, and Selected
	// those that the entry has if it selects a workload, one for each port.
	Self     func(hostname registry.Hostname) []registry.Endpoint
	Selected func(w *Workload) []registry.Endpoint
}

// Host is one host of an entry.
type Host struct {
	Hostname registry.Hostname
	// Services holds one for each address.
	Services []*registry.Service
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
	// Addresses are those at which there are instances, and Instances returns them.
	Addresses []string
	Instances func(address string) []registry.ServiceInstance
	// Usual returns the one form in which an address is looked up.
	Usual func(address string) string
}

// HostEndpoints is the endpoints of a host name in a namespace.
type HostEndpoints struct {
	Namespace string
	Hostname  registry.Hostname
	Endpoints []*registry.Endpoint
}
