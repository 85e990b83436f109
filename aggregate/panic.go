// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// handlerPanicked logs the panic of a handler of the events of registries.
func (c *Controller) handlerPanicked(p *guard.PanicError, e event, _ int) {
	attrs := []slog.Attr{slog.String("cluster", string(e.cluster))}
	switch {
	case e.service != nil:
		attrs = append(attrs, slog.String("event", e.service.event.String()), slog.String("service", string(e.service.curr.Hostname)))
	case e.workload != nil:
		attrs = append(attrs, slog.String("event", e.workload.event.String()), slog.String("workload", e.workload.curr.Key().String()))
	}
	p.Log(c.logger, "event handler", attrs...)
}

// receiverPanicked logs the panic of a registry that a workload was retracted from.
func (c *Controller) receiverPanicked(p *guard.PanicError, r retraction, _ int) {
	p.Log(c.logger, "receiver of workloads", slog.String("workload", r.workload.Key().String()))
}

// guarded calls a function of a registry, or of an updater for a shard. What it
// panics with costs that call.
func (c *Controller) guarded(what string, shard xdsupdate.ShardKey, f func()) {
	if p := guard.Call(f); p != nil {
		p.Log(c.logger, what, slog.String("provider", string(shard.Provider)), slog.String("cluster", string(shard.Cluster)))
	}
}

// updating calls an updater for a shard. What it panics with costs that call, so that
// the other shards of a registry are not left as they were.
func (c *Controller) updating(shard xdsupdate.ShardKey, f func()) { c.guarded("updater", shard, f) }
