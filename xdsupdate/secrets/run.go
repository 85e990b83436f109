// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// ReasonSecret is the reason of pushes for secrets.
const ReasonSecret xdsupdate.TriggerReason = "secret"

// Run refreshes the secrets that proxies have subscribed to, until stop is closed. Then it returns
// at once, without waiting for lookups in progress. Run may be called once, after ads.New; a second
// call panics. A panic of the updater is logged, and the changes are reported again.
func (p *Provider) Run(stop <-chan struct{}) {
	if p.ran.Swap(true) {
		panic("secrets: Run of a Provider was called twice")
	}
	var tick <-chan time.Time
	if p.store.opts.Interval > 0 {
		ticker := time.NewTicker(p.store.opts.Interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-stop:
			return
		case <-tick:
			p.store.refresh(false, stop)
		case <-p.poke:
			p.store.refresh(true, stop)
		case <-p.store.poke:
		}
		if isClosed(stop) {
			return
		}
		p.tryReport()
	}
}

// Changed makes Run call Function and Allow again at once. Call it when their results have changed.
// It does not block.
func (p *Provider) Changed() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// Refresh is one cycle of Run: it looks up all secrets that proxies have subscribed to, and reports
// the changed ones to the updater as one full push, on the caller's goroutine. It waits for the
// lookups, but no longer than Options.Timeout, and not for a lookup that is already late. The
// result of such a lookup is reported by Run or by the next Refresh.
func (p *Provider) Refresh() {
	deadline := time.Now().Add(p.store.opts.Timeout)
	for _, done := range p.store.refresh(true, nil) {
		await(done, time.Until(deadline), nil)
	}
	p.report()
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
func (p *Provider) report() {
	names := p.store.changed()
	if len(names) == 0 || p.updater == nil {
		return
	}
	keys := make([]xdsupdate.ConfigKey, 0, len(names))
	for _, n := range names {
		keys = append(keys, n.key())
	}
	reported := false
	defer func() {
		if !reported {
			p.store.restore(names)
		}
	}()
	p.updater.ConfigUpdate(&xdsupdate.PushRequest{
		Full: true, ConfigsUpdated: xdsupdate.KeySet(keys...), Start: time.Now(),
		Reason: map[xdsupdate.TriggerReason]int{ReasonSecret: len(keys)},
	})
	reported = true
}

// tryReport is report for Run, which survives a panic of the updater. A panic is logged when it
// begins.
func (p *Provider) tryReport() {
	defer func() {
		if guard.Recovered(recover()) != nil {
			if err := newPanicError(); p.updaterFailed.CompareAndSwap(false, true) {
				p.store.opts.Logger.Error("changed secrets are not reported to the updater", p.store.opts.attrs("updater", err)...)
			}
		}
	}()
	p.report()
	p.updaterFailed.Store(false)
}
