// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Updater is where changes are reported to: ads.Server is one.
type Updater interface {
	ConfigUpdate(*xdsupdate.PushRequest)
}

// ReasonSecret is the reason of pushes for secrets.
const ReasonSecret xdsupdate.TriggerReason = "secret"

// Run watches the secrets that proxies have asked for, until stop is closed. It
// returns at once then: what has not answered by that time is not waited for. It may
// be called once; a second call panics. A nil updater is xdsupdate.Discard. A panic of
// the updater is logged, and what it was about is reported again.
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

// Changed says that the function, or Allow, would answer otherwise than before: Run
// calls it again at once. It does not block.
func (g *Generator) Changed() {
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// Refresh does what Run does, once: it looks all secrets up again that proxies have
// asked for, and reports those that have changed, if any, to the updater as one
// full push, on the caller's goroutine. It waits for the answers, but no longer
// than Options.Timeout, and not for what was late already: that is reported by Run,
// or by the next Refresh. A nil updater is xdsupdate.Discard.
func (g *Generator) Refresh(updater Updater) {
	deadline := time.Now().Add(g.store.opts.Timeout)
	for _, done := range g.store.refresh(true, nil) {
		await(done, time.Until(deadline), nil)
	}
	g.report(updater)
}

// refresh looks everything up again. It returns what it has begun, most of which
// has ended.
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

// report reports what has changed.
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

// tryReport is report for Run, which goes on if the updater panics. That is logged
// when it begins.
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
