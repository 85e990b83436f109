// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"log/slog"
	"slices"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// reporter calls the updater of a registry.
type reporter struct {
	shard  xdsupdate.ShardKey
	logger *slog.Logger
	target atomic.Pointer[target]
}

// target is an updater with its ability.
type target struct {
	xdsupdate.XDSUpdater
	deltas xdsupdate.EndpointDeltaUpdater // nil if the updater takes complete lists only
}

// Updater returns the updater that is called at present.
func (r *reporter) Updater() xdsupdate.XDSUpdater { return r.target.Load().XDSUpdater }

// SetUpdater makes another updater be called from now on; nil is xdsupdate.Discard. A
// registry with Options.Handle calls it there.
func (r *reporter) SetUpdater(updater xdsupdate.XDSUpdater) {
	t := &target{XDSUpdater: xdsupdate.Multi(updater)}
	t.deltas, _ = xdsupdate.As[xdsupdate.EndpointDeltaUpdater](t.XDSUpdater)
	r.target.Store(t)
}

// within calls a function within a batch of the updater.
func (r *reporter) within(f *guard.Inner) { r.panicked("updater", f.Within(r.updateBatch)) }

func (r *reporter) updateBatch(f func()) { xdsupdate.UpdateBatch(r.Updater(), f) }

// report calls the updater for a change, but for its proxies.
func (r *reporter) report(c *Change) {
	t := r.target.Load()
	if c == nil {
		return
	}
	for i := range c.Services {
		r.updateService(t, &c.Services[i])
	}
	for i := range c.Endpoints {
		r.updateEndpoints(t, &c.Endpoints[i])
	}
	r.requestPushes(t, c.Pushes)
}

func (r *reporter) updateService(t *target, s *ServiceUpdate) {
	defer r.recovered()
	t.SvcUpdate(r.shard, s.Hostname, s.Namespace, s.Event)
}

// updateEndpoints gives the changes if they are shorter than the list. So what comes
// first is complete, and takes the place of what a registry before has left in the
// shard.
func (r *reporter) updateEndpoints(t *target, e *EndpointUpdate) {
	defer r.recovered()
	if t.deltas == nil || len(e.Changes) == 0 || e.Endpoints.Len() <= len(e.Changes) {
		t.EDSUpdate(r.shard, e.Hostname, e.Namespace, e.Endpoints.View())
	} else {
		t.deltas.EDSDeltaUpdate(r.shard, e.Hostname, e.Namespace, e.Changes)
	}
}

// requestPushes asks for one push for each reason, of everything and of what keys name.
func (r *reporter) requestPushes(t *target, pushes []Push) {
	var requested []request
	for _, p := range pushes {
		if q := p.request(); !slices.Contains(requested, q) {
			requested = append(requested, q)
			r.requestPush(t, q, pushes)
		}
	}
}

// request says which pushes are asked for together.
type request struct {
	reason     xdsupdate.TriggerReason
	everything bool
}

func (p Push) request() request { return request{p.Reason, p.Key == xdsupdate.ConfigKey{}} }

func (r *reporter) requestPush(t *target, q request, pushes []Push) {
	defer r.recovered()
	var keys map[xdsupdate.ConfigKey]struct{}
	if !q.everything {
		keys = map[xdsupdate.ConfigKey]struct{}{}
		for _, p := range pushes {
			if p.request() == q {
				keys[p.Key] = struct{}{}
			}
		}
	}
	t.ConfigUpdate(&xdsupdate.PushRequest{
		Full: true, Forced: q.everything, ConfigsUpdated: keys, Start: time.Now(),
		Reason: map[xdsupdate.TriggerReason]int{q.reason: 1},
	})
}

func (r *reporter) updateProxies(proxies func() []Proxy) {
	t := r.target.Load()
	if proxies == nil {
		return
	}
	for _, p := range proxies() {
		r.updateProxy(t, p)
	}
}

func (r *reporter) updateProxy(t *target, p Proxy) {
	defer r.recovered()
	t.ProxyUpdate(p.Cluster, p.IP)
}

// recovered logs the panic of a call of the updater, for which it is deferred.
func (r *reporter) recovered() { r.panicked("updater", guard.Recovered(recover())) }

// panicked logs a panic; nil is none.
func (r *reporter) panicked(what string, p *guard.PanicError) {
	if p != nil {
		p.Log(r.logger, what, slog.String("registry", r.shard.String()))
	}
}
