// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/registry"
)

// EDSUpdate updates the index and asks for the push that this needs.
func (p *Pusher) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	p.update(p.index.writer(shard, right{}), serviceName{hostname, namespace}, update{list: endpoints})
}

// EDSDeltaUpdate updates the index and asks for the push that this needs.
func (p *Pusher) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	p.update(p.index.writer(shard, right{}), serviceName{hostname, namespace}, update{changes: changes, delta: true})
}

// EDSCacheUpdate updates the index.
func (p *Pusher) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	p.index.UpdateServiceEndpoints(shard, hostname, namespace, endpoints)
}

// SvcUpdate removes the shard's endpoints from the index if the service was
// deleted. What is then reported of the service's endpoints is pushed in full.
func (p *Pusher) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	p.redefine(p.index.writer(shard, right{}), serviceName{hostname, namespace}, event)
}

// ConfigUpdate asks for a push; nil asks for nothing.
func (p *Pusher) ConfigUpdate(req *PushRequest) {
	if req == nil {
		return
	}
	now := p.now()
	p.mu.Lock()
	l := p.lane(!req.Full && !req.Forced)
	l.add(req)
	earlier := l.ask(now, p.epoch)
	if p.opts.SecurityMax >= 0 && l == &p.all && req.aboutSecurity() {
		earlier = l.hurry(now+p.opts.SecurityMax) || earlier
	}
	p.mu.Unlock()
	if earlier {
		p.poke()
	}
}

// ProxyUpdate calls PusherOptions.ProxyUpdate.
func (p *Pusher) ProxyUpdate(cluster registry.ClusterID, ip string) {
	if p.opts.ProxyUpdate != nil {
		p.guarded("ProxyUpdate", func() { p.opts.ProxyUpdate(cluster, ip) }, slog.String("ip", ip))
	}
}

// RemoveShard removes the shard from the index, asks for a push of the services
// that lost endpoints, and calls PusherOptions.ShardRemoved.
func (p *Pusher) RemoveShard(shard ShardKey) {
	p.removeShard(p.index.writer(shard, right{}))
}

// callShard makes a call of an owner. The index asks for the right.
func (p *Pusher) callShard(c shardCall) {
	w := p.index.writer(c.shard, c.right)
	switch c.kind {
	case callEDSUpdate:
		p.update(w, c.name, update{list: c.list})
	case callEDSDeltaUpdate:
		p.update(w, c.name, update{changes: c.changes, delta: true})
	case callEDSCacheUpdate:
		p.index.write(w, c.name, update{list: c.list})
	case callSvcUpdate:
		p.redefine(w, c.name, c.event)
	case callRemoveShard:
		p.removeShard(w)
	case callPrune:
		for _, key := range p.index.removeAll(w, c.heir.succeeds) {
			p.askRemoved(key)
		}
	}
}

// update writes endpoints of a service and asks for the push that this needs.
func (p *Pusher) update(w writer, name serviceName, u update) {
	push := p.index.write(w, name, u)
	if push == NoPush {
		return
	}
	now, key := p.now(), ServiceKey(name.hostname, name.namespace)
	p.mu.Lock()
	_, full := p.redefined[key]
	full = full || push == FullPush
	l := p.lane(!full)
	l.addOne(key, full, ReasonEndpoint)
	opened := l.ask(now, p.epoch)
	p.mu.Unlock()
	if opened {
		p.poke()
	}
}

// redefine notes that the definition of a service has changed.
func (p *Pusher) redefine(w writer, name serviceName, event registry.Event) {
	if w.valid() {
		p.mu.Lock()
		p.redefined[ServiceKey(name.hostname, name.namespace)] = struct{}{}
		p.mu.Unlock()
	}
	if event == registry.EventDelete {
		p.index.delete(w, name)
	}
}

// removeShard removes all endpoints of a writer's shard, if it may still write.
func (p *Pusher) removeShard(w writer) {
	if !w.valid() {
		return
	}
	p.askRemoved(p.index.removeAll(w, byAnyone)...)
	if p.opts.ShardRemoved != nil {
		p.guarded("ShardRemoved", func() { p.opts.ShardRemoved(w.shard.key) }, slog.String("shard", w.shard.key.String()))
	}
}

// askRemoved asks for a push of services that lost a registry.
func (p *Pusher) askRemoved(keys ...ConfigKey) {
	if len(keys) > 0 {
		p.ConfigUpdate(&PushRequest{
			Full: true, ConfigsUpdated: KeySet(keys...), Reason: map[TriggerReason]int{ReasonCluster: 1},
		})
	}
}
