// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Updater is where changes are reported to: ads.Server is one.
type Updater interface {
	ConfigUpdate(*xdsupdate.PushRequest)
}

// ReasonSecret is the reason of pushes for secrets.
const ReasonSecret xdsupdate.TriggerReason = "secret"

// Run watches the secrets that proxies have asked for, until stop is closed. It may
// be called once; a second call panics.
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
		case <-g.poke:
		}
		g.Refresh(updater)
	}
}

// Changed says that the function would answer otherwise than before: Run calls it
// again at once. It does not block.
func (g *Generator) Changed() {
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// Refresh does what Run does, once, on the caller's goroutine: it reads all secrets
// that proxies have asked for, and reports those that have changed, if any, to the
// updater as one full push.
func (g *Generator) Refresh(updater Updater) {
	var keys []xdsupdate.ConfigKey
	for _, n := range g.store.refreshAll() {
		keys = append(keys, n.key())
	}
	if len(keys) == 0 {
		return
	}
	updater.ConfigUpdate(&xdsupdate.PushRequest{
		Full: true, ConfigsUpdated: xdsupdate.KeySet(keys...), Start: time.Now(),
		Reason: map[xdsupdate.TriggerReason]int{ReasonSecret: len(keys)},
	})
}
