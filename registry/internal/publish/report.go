// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"log/slog"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// target is an updater.
type target struct {
	inbox xdsupdate.Inbox
	// update is the update that is built. Its slices are reused.
	update xdsupdate.Update
	// services are the services of the last update.
	services *registry.ServiceSet
}

// commit applies the update that fill builds.
func (t *target) commit(fill func()) {
	t.inbox.Begin()
	fill()
	t.inbox.Commit(&t.update)
	t.update.Reset()
}

// tell records the services if they have changed.
func (t *target) tell(source *xdsupdate.Source, services *registry.ServiceSet) {
	if services != t.services {
		t.services = services
		t.update.SetServices(source, services)
	}
}

// note records a change.
func (t *target) note(shard xdsupdate.ShardKey, c *Change) {
	if c.Configs != nil {
		t.update.Add(c.Configs)
	}
	for i := range c.Services {
		s := &c.Services[i]
		t.update.SvcUpdate(shard, s.Hostname, s.Namespace, s.Event)
	}
	for i := range c.Endpoints {
		t.noteEndpoints(shard, &c.Endpoints[i])
	}
	t.notePushes(c.Pushes)
	if c.Proxies == nil {
		return
	}
	for _, p := range c.Proxies() {
		t.update.ProxyUpdate(p.Cluster, p.IP)
	}
}

// noteEndpoints adds the changes if they are shorter than the list. The first update of a service is
// therefore a list, which replaces the endpoints that another registry left in the shard.
func (t *target) noteEndpoints(shard xdsupdate.ShardKey, e *EndpointUpdate) {
	if len(e.Changes) == 0 || e.Endpoints.Len() <= len(e.Changes) {
		t.update.EDSUpdate(shard, e.Hostname, e.Namespace, e.Endpoints.View())
	} else {
		t.update.EDSDeltaUpdate(shard, e.Hostname, e.Namespace, e.Changes)
	}
}

// notePushes records one push request for each reason, and a separate one for a push of everything.
func (t *target) notePushes(pushes []Push) {
	var requested []request
	for _, p := range pushes {
		if q := p.request(); !slices.Contains(requested, q) {
			requested = append(requested, q)
			t.update.ConfigUpdate(q.of(pushes))
		}
	}
}

// request identifies the pushes that are requested together.
type request struct {
	reason     xdsupdate.TriggerReason
	everything bool
}

func (p Push) request() request { return request{p.Reason, p.Key == xdsupdate.ConfigKey{}} }

// of returns the push request for the pushes that belong to q.
func (q request) of(pushes []Push) *xdsupdate.PushRequest {
	var keys map[xdsupdate.ConfigKey]struct{}
	if !q.everything {
		keys = map[xdsupdate.ConfigKey]struct{}{}
		for _, p := range pushes {
			if p.request() == q {
				keys[p.Key] = struct{}{}
			}
		}
	}
	return &xdsupdate.PushRequest{
		Full: true, Forced: q.everything, ConfigsUpdated: keys, Start: time.Now(),
		Reason: map[xdsupdate.TriggerReason]int{q.reason: 1},
	}
}

// report has the updater called for committed updates.
func (p *Publisher[E, S]) report() {
	p.mu.Lock()
	inbox, ended := p.target.inbox, p.ended
	p.mu.Unlock()
	if !ended {
		inbox.Deliver(p.ofUpdater)
	}
}

// panicked logs a panic. Nil means no panic.
func (p *Publisher[E, S]) panicked(what string, err *guard.PanicError) {
	if err != nil {
		err.Log(p.opts.Logger, what, slog.String("registry", p.opts.Shard.String()))
	}
}
