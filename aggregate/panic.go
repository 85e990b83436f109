// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// handlerPanicked logs the panic of an event handler.
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

// receiverPanicked logs that a registry panicked when it was told that a workload is gone.
func (c *Controller) receiverPanicked(p *guard.PanicError, r retraction, _ int) {
	p.Log(c.logger, "receiver of workloads", slog.String("workload", r.workload.Key().String()))
}

// guarded calls a function of a registry, or of an updater for a shard. It recovers and logs a
// panic.
func (c *Controller) guarded(what string, shard xdsupdate.ShardKey, f func()) {
	if p := guard.Call(f); p != nil {
		p.Log(c.logger, what, slog.String("provider", string(shard.Provider)), slog.String("cluster", string(shard.Cluster)))
	}
}

// updating calls an updater for a shard. It recovers a panic, so that the remaining shards of a
// registry are updated too.
func (c *Controller) updating(shard xdsupdate.ShardKey, f func()) { c.guarded("updater", shard, f) }
