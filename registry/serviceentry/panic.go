// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func (c *Controller) newQueue() *notify.Queue[message] {
	return notify.New(notify.Options[message]{Name: "serviceentry", Panicked: func(p *guard.PanicError, m message, _ int) {
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
		p.Log(c.logger, what, slog.String("registry", c.shard.String()))
	}
}

// call calls the updater.
func (c *Controller) call(f func()) { c.panicked("updater", guard.Call(f)) }

func (c *Controller) updateBatch(publish func()) { xdsupdate.UpdateBatch(c.updater, publish) }

// networkOf asks the host for a network. There is none if it panics.
func (c *conversion) networkOf(address string, labels registry.Labels) (network string) {
	p := guard.Call(func() { network = c.options.NetworkOf(address, labels) })
	if p != nil {
		p.Log(c.options.Logger, "NetworkOf", slog.String("address", address))
	}
	return network
}
