// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// EDSUpdate updates the index and asks for the push that this needs.
func (p *Pusher) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	p.ask(hostname, namespace, p.index.UpdateServiceEndpoints(shard, hostname, namespace, endpoints))
}

// EDSDeltaUpdate updates the index and asks for the push that this needs.
func (p *Pusher) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	p.ask(hostname, namespace, p.index.UpdateEndpoints(shard, hostname, namespace, changes))
}

// EDSCacheUpdate updates the index.
func (p *Pusher) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	p.index.UpdateServiceEndpoints(shard, hostname, namespace, endpoints)
}

// SvcUpdate removes the shard's endpoints from the index if the service was
// deleted. What is then reported of the service's endpoints is pushed in full.
func (p *Pusher) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	p.redefine(hostname, namespace)
	if event == registry.EventDelete {
		p.index.DeleteServiceShard(shard, hostname, namespace)
	}
}

// ConfigUpdate asks for a push; nil asks for nothing.
func (p *Pusher) ConfigUpdate(req *PushRequest) {
	if req == nil {
		return
	}
	now := p.now()
	p.mu.Lock()
	l := p.lane(req.EndpointsOnly())
	l.add(req)
	opened := l.ask(now, p.epoch)
	p.mu.Unlock()
	if opened {
		p.poke()
	}
}

// ProxyUpdate calls PusherOptions.ProxyUpdate.
func (p *Pusher) ProxyUpdate(cluster registry.ClusterID, ip string) {
	if p.opts.ProxyUpdate != nil {
		p.opts.ProxyUpdate(cluster, ip)
	}
}

// RemoveShard removes the shard from the index, asks for a push of the services
// that lost endpoints, and calls PusherOptions.ShardRemoved.
func (p *Pusher) RemoveShard(shard ShardKey) {
	p.askRemoved(p.index.RemoveShard(shard))
	if p.opts.ShardRemoved != nil {
		p.opts.ShardRemoved(shard)
	}
}

// ask asks for the push of one service's endpoints.
func (p *Pusher) ask(hostname registry.Hostname, namespace string, push PushType) {
	if push == NoPush {
		return
	}
	now, key := p.now(), ServiceKey(hostname, namespace)
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
func (p *Pusher) redefine(hostname registry.Hostname, namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.redefined[ServiceKey(hostname, namespace)] = struct{}{}
}

// askRemoved asks for a push of services that lost a registry.
func (p *Pusher) askRemoved(keys []ConfigKey) {
	if len(keys) > 0 {
		p.ConfigUpdate(&PushRequest{
			Full: true, ConfigsUpdated: KeySet(keys...), Reason: map[TriggerReason]int{ReasonCluster: 1},
		})
	}
}
