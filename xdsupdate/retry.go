// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"log/slog"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// The first push that makes up for a failed one comes after minRetry; each that fails
// again doubles the time, up to maxRetry.
const (
	minRetry = time.Second
	maxRetry = time.Minute
)

// retry is the state of failed pushes. The Pusher's mu guards it.
type retry struct {
	// failed means that a push of everything is needed. Until one succeeds, all full pushes are of
	// everything.
	failed bool
	// again means that there was a failure after the running push began.
	again bool
	// waiting means that a retry is due at a time; after is its delay.
	waiting   bool
	at, after time.Duration
}

// ask notes that something has failed.
func (r *retry) ask(now time.Duration) (opened bool) {
	r.failed, r.again = true, true
	if r.waiting {
		return false
	}
	r.after = min(max(minRetry, 2*r.after), maxRetry)
	r.waiting, r.at = true, now+r.after
	return true
}

// pushed notes the end of a push of everything.
func (r *retry) pushed() {
	if !r.again {
		*r = retry{}
	}
}

// Retry requests a push of everything, because a push or the processing of its result has failed.
// It is delayed by a second. The delay doubles with each further failure, up to a minute. An
// earlier full push becomes a push of everything. Without Run, the next full push becomes one.
func (p *Pusher) Retry() {
	p.mu.Lock()
	opened := p.retry.ask(p.now())
	p.mu.Unlock()
	if opened {
		p.poke()
	}
}

// dueLocked returns when the next push is due, or forever if nothing waits.
func (p *Pusher) dueLocked() time.Duration {
	if p.retry.waiting {
		return min(p.due(), p.retry.at)
	}
	return p.due()
}

// retryLocked requests the push after a failure, if it is due.
func (p *Pusher) retryLocked(now time.Duration) {
	if !p.retry.waiting || p.retry.at > now {
		return
	}
	p.retry.waiting = false
	p.all.add(&PushRequest{Full: true, Forced: true})
	p.all.ask(now, p.epoch)
	p.all.atOnce = true
}

// makeUpLocked makes a full request one for everything if something was left undone.
func (p *Pusher) makeUpLocked(request *PushRequest) {
	p.retry.again = false
	if p.retry.failed && request.Full {
		request.Forced, request.ConfigsUpdated = true, nil
	}
}

// guarded calls a function of the program's, logs a panic, and reports whether there was
// none.
func (p *Pusher) guarded(what string, f func(), attrs ...slog.Attr) bool {
	panicked := guard.Call(f)
	panicked.Log(p.opts.Logger, what, attrs...)
	return panicked == nil
}
