// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Updater receives the pushes for changed secrets. ads.Server implements it.
type Updater interface {
	ConfigUpdate(*xdsupdate.PushRequest)
}

// ReasonSecret is the reason of pushes for secrets.
const ReasonSecret xdsupdate.TriggerReason = "secret"

// Run refreshes the secrets that proxies have subscribed to, until stop is closed. Then it returns
// at once, without waiting for lookups in progress. Run may be called once; a second call panics. A
// nil updater is xdsupdate.Discard. A panic of the updater is logged, and the changes are reported
// again.
func (g *Generator) Run(updater Updater, stop <-chan struct{}) {
	if g.ran.Swap(true) {
		panic("secrets: Run of a Generator was called twice")
	}
	var tick <-chan time.Time
	if g.store.opts.Interval > 0 {
		ticker := time.NewTicker(g.store.opts.Interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-stop:
			return
		case <-tick:
			g.store.refresh(false, stop)
		case <-g.poke:
			g.store.refresh(true, stop)
		case <-g.store.poke:
		}
		if isClosed(stop) {
			return
		}
		g.tryReport(updater)
	}
}

// Changed makes Run call Function and Allow again at once. Call it when their results have changed.
// It does not block.
func (g *Generator) Changed() {
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// Refresh is one cycle of Run: it looks up all secrets that proxies have subscribed to, and reports
// the changed ones to the updater as one full push, on the caller's goroutine. It waits for the
// lookups, but no longer than Options.Timeout, and not for a lookup that is already late. The
// result of such a lookup is reported by Run or by the next Refresh. A nil updater is
// xdsupdate.Discard.
func (g *Generator) Refresh(updater Updater) {
	deadline := time.Now().Add(g.store.opts.Timeout)
	for _, done := range g.store.refresh(true, nil) {
		await(done, time.Until(deadline), nil)
	}
	g.report(updater)
}

// refresh begins all lookups again. It returns the channels of the lookups; most of them are
// closed.
func (s *store) refresh(again bool, stop <-chan struct{}) []<-chan struct{} {
	var out []<-chan struct{}
	for _, b := range s.permissions.refresh(again, stop) {
		out = append(out, b.done)
	}
	for _, b := range s.secrets.refresh(again, stop) {
		out = append(out, b.done)
	}
	return out
}

// report reports the changed secrets to the updater.
func (g *Generator) report(updater Updater) {
	names := g.store.changed()
	if len(names) == 0 || updater == nil {
		return
	}
	keys := make([]xdsupdate.ConfigKey, 0, len(names))
	for _, n := range names {
		keys = append(keys, n.key())
	}
	reported := false
	defer func() {
		if !reported {
			g.store.restore(names)
		}
	}()
	updater.ConfigUpdate(&xdsupdate.PushRequest{
		Full: true, ConfigsUpdated: xdsupdate.KeySet(keys...), Start: time.Now(),
		Reason: map[xdsupdate.TriggerReason]int{ReasonSecret: len(keys)},
	})
	reported = true
}

// tryReport is report for Run, which survives a panic of the updater. A panic is logged when it
// begins.
func (g *Generator) tryReport(updater Updater) {
	defer func() {
		if guard.Recovered(recover()) != nil {
			if err := newPanicError(); g.updaterFailed.CompareAndSwap(false, true) {
				g.store.opts.Logger.Error("changed secrets are not reported to the updater", g.store.opts.attrs("updater", err)...)
			}
		}
	}()
	g.report(updater)
	g.updaterFailed.Store(false)
}
