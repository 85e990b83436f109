// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// XDSUpdater receives the changes of registries. Slices and their elements are shared and
// read-only. The receiver may keep them.
//
// A registry calls it without holding a lock, one call at a time, after its own reads show the new
// state. For one change the order is SvcUpdate, EDSUpdate, ConfigUpdate, ProxyUpdate.
type XDSUpdater interface {
	// EDSUpdate gives the complete list of a shard's endpoints for a service,
	// sorted by registry.CompareEndpoints, or none.
	EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint)

	// EDSCacheUpdate is EDSUpdate without a push, because another call requests one.
	EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint)

	// SvcUpdate reports that the definition of a service has changed. EventDelete removes the
	// shard's endpoints and all data about them. It does not push; a ConfigUpdate follows.
	SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event)

	// ConfigUpdate asks for a push. The request is immutable from then on.
	ConfigUpdate(req *PushRequest)

	// ProxyUpdate requests a push to the proxy with an IP address in a cluster, because its
	// workload or its services have changed.
	ProxyUpdate(cluster registry.ClusterID, ip string)

	// RemoveShard removes all endpoints of a deleted registry.
	RemoveShard(shard ShardKey)
}

// EndpointDeltaUpdater is the optional ability of an XDSUpdater to take changes
// of a service's endpoints instead of complete lists: a registry then pays for
// the change, not for the service. Find it with As. Complete lists and deltas may
// be mixed.
type EndpointDeltaUpdater interface {
	// EDSDeltaUpdate changes a shard's endpoints for a service. It pushes exactly
	// when EDSUpdate with the resulting list would.
	EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange)
}

// EndpointChange is the change of one endpoint.
type EndpointChange struct {
	// Old is the endpoint, by pointer, that an earlier call passed for this shard and service, or
	// nil for a new endpoint. If the receiver does not have it, for example after a SvcUpdate, it
	// adds New nevertheless.
	Old *registry.Endpoint
	// New replaces Old. It is nil if the endpoint was removed.
	New *registry.Endpoint
}
