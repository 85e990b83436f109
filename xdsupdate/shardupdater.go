// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// ShardClaimer is the optional ability of an XDSUpdater to give a registry
// instance an updater of its own, which is taken away from it when the instance
// is replaced. Find it by a type assertion.
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

	// Shard returns the shard.
	Shard() ShardKey

	// Prune removes the endpoints that a predecessor left in the shard and that
	// were not written since the claim, and asks for a push of their services. A
	// host calls it when the new registry has synced.
	Prune()

	// Close gives the shard up. The endpoints stay. It may be called many times.
	Close()
}

// Claim returns an updater that may change the endpoints of a shard until the
// shard is claimed again. The ones who call the Pusher itself may always.
func (p *Pusher) Claim(shard ShardKey) ShardUpdater {
	return &shardUpdater{pusher: p, writer: p.index.claim(shard)}
}

// shardUpdater is a Pusher that writes to one shard through a claim.
type shardUpdater struct {
	pusher *Pusher
	writer *shardWriter
}

// Shard returns the shard.
func (u *shardUpdater) Shard() ShardKey { return u.writer.Shard() }

// Close gives the shard up.
func (u *shardUpdater) Close() { u.writer.Close() }

// Prune removes what a predecessor left and asks for a push of it.
func (u *shardUpdater) Prune() { u.pusher.askRemoved(u.writer.Prune()) }

// EDSUpdate is Pusher.EDSUpdate while the shard is held.
func (u *shardUpdater) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	if shard != u.Shard() {
		u.pusher.EDSUpdate(shard, hostname, namespace, endpoints)
		return
	}
	u.pusher.ask(hostname, namespace, u.writer.UpdateServiceEndpoints(hostname, namespace, endpoints))
}

// EDSDeltaUpdate is Pusher.EDSDeltaUpdate while the shard is held.
func (u *shardUpdater) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	if shard != u.Shard() {
		u.pusher.EDSDeltaUpdate(shard, hostname, namespace, changes)
		return
	}
	u.pusher.ask(hostname, namespace, u.writer.UpdateEndpoints(hostname, namespace, changes))
}

// EDSCacheUpdate is Pusher.EDSCacheUpdate while the shard is held.
func (u *shardUpdater) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	if shard != u.Shard() {
		u.pusher.EDSCacheUpdate(shard, hostname, namespace, endpoints)
		return
	}
	u.writer.UpdateServiceEndpoints(hostname, namespace, endpoints)
}

// SvcUpdate is Pusher.SvcUpdate while the shard is held.
func (u *shardUpdater) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	if shard != u.Shard() {
		u.pusher.SvcUpdate(shard, hostname, namespace, event)
		return
	}
	if u.writer.Valid() {
		u.pusher.redefine(hostname, namespace)
	}
	if event == registry.EventDelete {
		u.writer.DeleteService(hostname, namespace)
	}
}

// RemoveShard removes the endpoints if the shard is still the caller's: a
// registry that was replaced takes nothing from its successor.
func (u *shardUpdater) RemoveShard(shard ShardKey) {
	if shard != u.Shard() {
		u.pusher.RemoveShard(shard)
		return
	}
	if !u.writer.Valid() {
		return
	}
	u.pusher.askRemoved(u.writer.Remove())
	if u.pusher.opts.ShardRemoved != nil {
		u.pusher.opts.ShardRemoved(shard)
	}
}

// ConfigUpdate is Pusher.ConfigUpdate.
func (u *shardUpdater) ConfigUpdate(req *PushRequest) { u.pusher.ConfigUpdate(req) }

// ProxyUpdate is Pusher.ProxyUpdate.
func (u *shardUpdater) ProxyUpdate(cluster registry.ClusterID, ip string) {
	u.pusher.ProxyUpdate(cluster, ip)
}

// UpdateBatch is Pusher.UpdateBatch.
func (u *shardUpdater) UpdateBatch(publish func()) { u.pusher.UpdateBatch(publish) }
