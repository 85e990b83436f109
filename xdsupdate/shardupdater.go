// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// ShardClaimer is the optional ability of an XDSUpdater to give a registry
// instance an updater of its own, which is taken away from it when the instance
// is replaced. Find it with As.
type ShardClaimer interface {
	// Claim takes a shard over: the updater that the last Claim of the shard
	// returned has no effect on the shard any more, from the moment at which
	// Claim returns. The endpoints stay until they are overwritten, or pruned.
	Claim(shard ShardKey) ShardUpdater
}

// ShardUpdater is the XDSUpdater of one registry instance. Calls that would
// change the endpoints of its shard have no effect after another claim or Close.
// Calls for other shards, ConfigUpdate and ProxyUpdate always pass.
type ShardUpdater interface {
	XDSUpdater
	EndpointDeltaUpdater

	// Prune removes the endpoints that a predecessor left in the shard and that
	// were not written since the claim, and asks for a push of their services. A
	// host calls it when the new registry has synced.
	Prune()

	// Close gives the shard up. The endpoints stay. It may be called many times.
	Close()
}

// Claim returns an updater that may change the endpoints of a shard until the
// shard is claimed again. Calls of the Pusher itself are never refused.
func (p *Pusher) Claim(shard ShardKey) ShardUpdater {
	return &shardUpdater{pusher: p, claim: p.index.claim(shard)}
}

// shardUpdater is a Pusher that writes to one shard by a claim.
type shardUpdater struct {
	pusher *Pusher
	claim  writer
}

// writer returns the right to write to a shard: the claim, if it is of that shard.
func (u *shardUpdater) writer(shard ShardKey) writer {
	if shard == u.claim.shard.key {
		return u.claim
	}
	return u.pusher.index.writer(shard)
}

// PassesTo returns the Pusher: see ServiceHandler.
func (u *shardUpdater) PassesTo() []XDSUpdater { return []XDSUpdater{u.pusher} }

// Close gives the shard up.
func (u *shardUpdater) Close() { u.claim.close() }

// Prune removes what a predecessor left and asks for a push of it.
func (u *shardUpdater) Prune() {
	u.pusher.askRemoved(u.pusher.index.removeWhere(u.claim, u.claim.outdated))
}

// EDSUpdate is Pusher.EDSUpdate while the shard is held.
func (u *shardUpdater) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	u.pusher.update(u.writer(shard), serviceName{hostname, namespace}, update{list: endpoints})
}

// EDSDeltaUpdate is Pusher.EDSDeltaUpdate while the shard is held. The first call
// for a service replaces what a predecessor left.
func (u *shardUpdater) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	u.pusher.update(u.writer(shard), serviceName{hostname, namespace}, update{changes: changes, delta: true})
}

// EDSCacheUpdate is Pusher.EDSCacheUpdate while the shard is held.
func (u *shardUpdater) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	u.pusher.index.write(u.writer(shard), serviceName{hostname, namespace}, update{list: endpoints})
}

// SvcUpdate is Pusher.SvcUpdate while the shard is held.
func (u *shardUpdater) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	u.pusher.redefine(u.writer(shard), serviceName{hostname, namespace}, event)
}

// RemoveShard removes the endpoints while the shard is held: a registry that was
// replaced takes nothing from its successor.
func (u *shardUpdater) RemoveShard(shard ShardKey) { u.pusher.removeShard(u.writer(shard)) }

// ConfigUpdate is Pusher.ConfigUpdate.
func (u *shardUpdater) ConfigUpdate(req *PushRequest) { u.pusher.ConfigUpdate(req) }

// ProxyUpdate is Pusher.ProxyUpdate.
func (u *shardUpdater) ProxyUpdate(cluster registry.ClusterID, ip string) {
	u.pusher.ProxyUpdate(cluster, ip)
}

// UpdateBatch is Pusher.UpdateBatch.
func (u *shardUpdater) UpdateBatch(publish func()) { u.pusher.UpdateBatch(publish) }
