// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// Discard is an XDSUpdater that does nothing, for registries whose changes
// are not pushed. It is neither a target nor a BatchUpdater, because the methods of a type that embeds
// Discard would be bypassed.
type Discard struct{}

var (
	_ XDSUpdater           = Discard{}
	_ EndpointDeltaUpdater = Discard{}
)

// EDSUpdate does nothing.
func (Discard) EDSUpdate(ShardKey, registry.Hostname, string, []*registry.Endpoint) {}

// EDSDeltaUpdate does nothing.
func (Discard) EDSDeltaUpdate(ShardKey, registry.Hostname, string, []EndpointChange) {}

// EDSCacheUpdate does nothing.
func (Discard) EDSCacheUpdate(ShardKey, registry.Hostname, string, []*registry.Endpoint) {}

// SvcUpdate does nothing.
func (Discard) SvcUpdate(ShardKey, registry.Hostname, string, registry.Event) {}

// ConfigUpdate does nothing.
func (Discard) ConfigUpdate(*PushRequest) {}

// ProxyUpdate does nothing.
func (Discard) ProxyUpdate(registry.ClusterID, string) {}

// RemoveShard does nothing.
func (Discard) RemoveShard(ShardKey) {}
