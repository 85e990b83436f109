// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func (c *Controller) newQueue() *notify.Queue[message] {
	return notify.New(notify.Options[message]{Name: "kube", Panicked: func(p *guard.PanicError, m message, _ int) {
		if m.isEvent() {
			c.panicked("registry", p)
		} else {
			c.panicked("event handler", p)
		}
	}})
}

// panicked logs a panic; nil is none.
func (c *Controller) panicked(what string, p *guard.PanicError) {
	if p != nil {
		p.Log(c.options.Logger, what, slog.String("registry", c.shard.String()))
	}
}

// call calls the updater.
func (c *Controller) call(f func()) { c.panicked("updater", guard.Call(f)) }

func (c *Controller) request(req *xdsupdate.PushRequest) {
	c.call(func() { c.updater().ConfigUpdate(req) })
}

func (c *Controller) updateBatch(publish func()) { xdsupdate.UpdateBatch(c.updater(), publish) }
