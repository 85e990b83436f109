// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/registry"
)

// Options configure a Controller. The zero value behaves as Istio 1.30 does by
// default.
type Options struct {
	// ClusterID is the cluster of the registry: of its shard, its endpoints and
	// its proxies. The default is the empty name.
	ClusterID registry.ClusterID

	// Mesh is the initial state of the mesh; UpdateMesh replaces it. The zero
	// value has the trust domain "cluster.local" and everything visible. MeshOf makes it
	// of the mesh configuration that package traffic takes.
	Mesh Mesh

	// Namespaces are the namespaces that are known initially; UpdateNamespace and
	// DeleteNamespace change them. Entries may be in namespaces that are not
	// known. The default is none.
	Namespaces []Namespace

	// NetworkOf returns the network of a workload that names none, neither in its
	// network field nor in the label topology.istio.io/network; "" if there is
	// none. It must not call the registry. Its answers must not change, except
	// before a call of UpdateMesh. If it panics the workload has no network. The
	// default is nil: no network.
	NetworkOf func(address string, labels registry.Labels) string

	// AddressAllocation says how services without an address get one. The default
	// is AllocateFromStatus.
	AddressAllocation AddressAllocation

	// IgnoreHealth: WorkloadEntries that are not healthy are used as well. The
	// default is to treat them as if they did not exist.
	IgnoreHealth bool

	// CanonicalServiceForMeshExternal: services outside the mesh get the labels
	// service.istio.io/canonical-name and canonical-revision, if they lack them.
	// The default is false.
	CanonicalServiceForMeshExternal bool

	// WorkloadEntriesOnly: ServiceEntries and the workloads of others are ignored.
	// There are no services; workload handlers are notified of the WorkloadEntries.
	// It is meant for the configs of a remote cluster. The default is false.
	WorkloadEntriesOnly bool

	// Logger gets problems that an operator can fix, and an error, with the stack, for each panic
	// in a function of the host. The default, nil, discards.
	Logger *slog.Logger
}

// AddressAllocation says how services without an address get one.
type AddressAllocation int

const (
	// AllocateFromStatus takes the addresses in the status of the ServiceEntry,
	// where a controller may have put them.
	AllocateFromStatus AddressAllocation = iota
	// AllocateByHash computes addresses from the names of all services, as Istio
	// does when PILOT_ENABLE_IP_AUTOALLOCATE is off. They are in 240.240.0.0/16
	// and 2001:2::f0f0:0/112, and are seen by Services and GetService. As in Istio a
	// service may get another address when others come or go, without an event.
	AllocateByHash
)
