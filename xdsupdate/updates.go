// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"log/slog"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// begin implements target. From now on a discovery may be ahead of the root.
func (p *Pusher) begin() { p.begun.Inc() }

func (p *Pusher) follows() bool { return false }
func (p *Pusher) holds() bool   { return false }

// deliver calls PusherOptions.ProxyUpdate for committed updates. Its panics are logged.
func (p *Pusher) deliver(func(*guard.PanicError)) {
	p.after.run(func(call func()) { call() })
}

func (p *Pusher) shardsOf(w *shardWriter) []ShardKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claims.of(w)
}

// commit applies the calls of an update in their order, and asks for the pushes that they need.
func (p *Pusher) commit(u *Update, by *stack) {
	now := p.now()
	if p.commitAll(u, by, now) {
		p.poke()
	}
}

// commitAll reports whether a push has become due earlier.
func (p *Pusher) commitAll(u *Update, by *stack, now time.Duration) (earlier bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range u.calls {
		earlier = p.applyLocked(&u.calls[i], by, now) || earlier
	}
	p.ended++
	return earlier
}

func (p *Pusher) applyLocked(c *call, by *stack, now time.Duration) (earlier bool) {
	by = c.stack(by)
	switch c.kind {
	case callConfigUpdate:
		return by.open() && p.askLocked(c.request, now)
	case callProxyUpdate:
		if by.open() && p.opts.ProxyUpdate != nil {
			cluster, ip := c.shard.Cluster, c.ip
			p.after.add(func() {
				p.guarded("ProxyUpdate", func() { p.opts.ProxyUpdate(cluster, ip) }, slog.String("ip", ip))
			})
		}
		return false
	case callSource:
		if !by.open() {
			return false
		}
		setSource(p.values, c, by)
		return c.request != nil && p.askLocked(c.request, now)
	case callConfigs: // valid from any registry
		req := p.configsLocked(c)
		return req != nil && p.askLocked(req, now)
	case callComplete:
		return p.completeShardsLocked(c.writer, by, now)
	default: // calls about a shard
	}
	right, ok := p.claims.right(by, c.shard)
	if !ok {
		return false
	}
	switch c.kind {
	case callEDSUpdate, callEDSDeltaUpdate:
		return p.writeLocked(c, right, now)
	case callEDSCacheUpdate:
		p.index.write(c.shard, right, c.name, c.update())
	case callSvcUpdate:
		p.redefined[ServiceKey(c.name.hostname, c.name.namespace)] = struct{}{}
		p.index.define(c.shard, c.name, c.event)
	case callRemoveShard:
		earlier = p.askRemovedLocked(p.index.RemoveShard(c.shard), now)
	default: // callTake has no more effect
	}
	return earlier
}

// askLocked merges a request with the pending requests.
func (p *Pusher) askLocked(req *PushRequest, now time.Duration) (earlier bool) {
	l := p.lane(!req.Full && !req.Forced)
	l.add(req)
	earlier = l.ask(now, p.epoch)
	if p.opts.Debounce.SecurityMax >= 0 && l == &p.all && req.aboutSecurity() {
		earlier = l.hurry(now+p.opts.Debounce.SecurityMax) || earlier
	}
	return earlier
}

// writeLocked writes endpoints of a service and asks for the push that this needs.
func (p *Pusher) writeLocked(c *call, by *right, now time.Duration) (earlier bool) {
	push := p.index.write(c.shard, by, c.name, c.update())
	if push == NoPush {
		return false
	}
	key := ServiceKey(c.name.hostname, c.name.namespace)
	_, full := p.redefined[key]
	full = full || push == FullPush
	l := p.lane(!full)
	l.addOne(key, full, ReasonEndpoint)
	return l.ask(now, p.epoch)
}

// completeShardsLocked removes the remaining endpoints of predecessors of a writer, with one request for
// each service.
func (p *Pusher) completeShardsLocked(w *shardWriter, by *stack, now time.Duration) (earlier bool) {
	for _, key := range p.claims.left(w, by, p.index) {
		earlier = p.askRemovedLocked([]ConfigKey{key}, now) || earlier
	}
	return earlier
}

// askRemovedLocked asks for a push of services that lost a registry.
func (p *Pusher) askRemovedLocked(keys []ConfigKey, now time.Duration) (earlier bool) {
	if len(keys) == 0 {
		return false
	}
	return p.askLocked(&PushRequest{
		Full: true, ConfigsUpdated: KeySet(keys...), Reason: map[TriggerReason]int{ReasonCluster: 1},
	}, now)
}
