// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// target is what the registry reports to.
type target struct {
	updater xdsupdate.XDSUpdater
	deltas  xdsupdate.EndpointDeltaUpdater // nil if updater takes complete lists only
}

func newTarget(updater xdsupdate.XDSUpdater) *target {
	t := &target{updater: updater}
	t.deltas, _ = xdsupdate.As[xdsupdate.EndpointDeltaUpdater](updater)
	return t
}

// updater returns what the registry reports to at present.
func (c *Controller) updater() xdsupdate.XDSUpdater { return c.target.Load().updater }

// ReportTo makes the registry report to another updater, which must not be nil: first,
// in one batch, everything that the registry shows, as SvcUpdate and EDSUpdate; then
// what changes. It asks for no push. It returns when the first has happened, with an
// error as Flush does; handlers and the updater must not call it.
//
// A registry that New made with xdsupdate.Discard can so be filled before it takes the
// place of another one, which reports until then.
func (c *Controller) ReportTo(ctx context.Context, updater xdsupdate.XDSUpdater) error {
	c.enqueue(event{inspect: func(*engine) {
		c.target.Store(newTarget(updater))
		c.panicked("updater", guard.NewInner(c.reportAll).Within(c.updateBatch))
	}})
	return c.Flush(ctx)
}

// reportAll reports everything that the registry shows.
func (c *Controller) reportAll() {
	s := c.state.Load()
	var shown []*hostView
	for _, service := range s.services.List() {
		if v, ok := s.hosts.Get(service.Hostname); ok && !v.object.hidden() {
			shown = append(shown, v)
		}
	}
	for _, v := range shown {
		c.call(func() {
			c.updater().SvcUpdate(c.shard, v.service.Hostname, v.object.namespace, registry.EventAdd)
		})
	}
	for _, v := range shown {
		if v.endpoints.Len() > 0 {
			c.call(func() {
				c.updater().EDSUpdate(c.shard, v.service.Hostname, v.object.namespace, v.endpoints.Slice())
			})
		}
	}
}
