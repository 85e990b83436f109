// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// PusherOptions are the choices for a Pusher. The zero value works.
type PusherOptions struct {
	// Logger gets an error for each push, and each call of ProxyUpdate and
	// ShardRemoved, that panicked, with the stack. Default: nothing is logged.
	Logger *slog.Logger
	// DebounceAfter is the quiet time: a full request waits until no other one has
	// come for so long. Default 100 ms; negative: none, requests of all kinds are
	// pushed as soon as the push before them has ended.
	DebounceAfter time.Duration
	// DebounceMax is the longest that a full request waits. Default 500 ms, so that a change is on its way
	// within a second whoever writes what: with the 10 s of Istio 1.30 who writes an object every
	// 50 ms delays the changes of all others by so much.
	DebounceMax time.Duration
	// SecurityMax is the longest that a full request waits that names an object of the group security.istio.io, because
	// the object may close what is open. Such requests are pushed with all others that wait. Default 50 ms, so
	// that the push is on its way within 100 ms; negative: such requests wait like others.
	SecurityMax time.Duration
	// LeadingEdge pushes a full request at once if nothing was asked for or pushed
	// in the quiet time before. Default: it waits for others that belong to it.
	LeadingEdge bool
	// EndpointInterval is the least time from one push of endpoints to the next
	// push of endpoints only; changes that come meanwhile are merged. Default
	// 10 ms, or DebounceAfter if that is less; negative: none.
	EndpointInterval time.Duration
	// DebounceEndpoints makes requests for endpoints only wait like full ones, as
	// Istio 1.30 does by default.
	DebounceEndpoints bool
	// Capture is called before each push, on the goroutine of the push, with no lock held, and reads what
	// the push is made of besides its root, which has all that the request is about. It reports
	// whether that is exact: of no other moment than the root. If it is not, and a
	// registry has been at a change since the root was taken, a push captures again, with the root and the
	// request of then, a few times at most; the last call counts. If it panics there is no
	// push, and Retry makes up for it. Default: nothing is read, and that is exact.
	Capture func(*PushRequest, *Root) (exact bool)
	// ProxyUpdate is called for each ProxyUpdate when its update has been applied, by the
	// goroutine that brings it, or by one that is at another such call. Default: nothing
	// happens; a Pusher does not know proxies.
	ProxyUpdate func(cluster registry.ClusterID, ip string)
	// ShardRemoved is called for each RemoveShard like ProxyUpdate: the endpoints are gone
	// then and a push was asked for. Default: nothing.
	ShardRemoved func(shard ShardKey)
}

// Pusher is an XDSUpdater that keeps an EndpointIndex and makes pushes of what
// its calls: requests that come while others wait, or while a push is running,
// become one. It never blocks its callers and drops nothing.
//
//	call                         | request
//	-----------------------------|---------------------------------------------
//	EDSUpdate, EDSDeltaUpdate    | by the index: none for NoPush, else one for
//	                             | the service, reason endpoint; full for FullPush,
//	                             | and after a SvcUpdate until a full push of the
//	                             | service: new endpoints do not go to clients
//	                             | before the definition that they belong to
//	EDSCacheUpdate, SvcUpdate    | none
//	ConfigUpdate                 | the one given
//	RemoveShard                  | full, for the services that lost endpoints,
//	                             | reason cluster; none if there are none
//	ProxyUpdate                  | none, see PusherOptions
type Pusher struct {
	deltaFacade
	push  func(*PushRequest)
	opts  PusherOptions
	index *EndpointIndex
	epoch time.Time
	wake  chan struct{} // capacity 1: something new waits
	// begun counts the updates that registries have begun.
	begun atomic.Uint64
	// after are the calls of ProxyUpdate and ShardRemoved.
	after calls[func()]

	// mu is held by whoever applies an update, and by a push while it takes the request with the
	// root.
	mu     sync.Mutex
	claims claims
	// sources has the chains of the caches that are followed; it is set before there are any.
	sources *sources
	configs *pmap.Live[configKey, *configstore.Config]
	// services are those that sources have set. ended counts the updates that were applied.
	services *pmap.Live[*Source, sourceServices]
	ended    uint64
	lanes
	// redefined are the services of which SvcUpdate was called, and no full push yet.
	redefined map[ConfigKey]struct{}
	retry     retry
	finished  finished
	started   bool // Run was called
	running   bool // Run is not over
	pushing   bool // push is running
	// changed is closed and replaced when a push or Run has ended; nil unless
	// a goroutine waits for that.
	changed chan struct{}
}

var (
	_ XDSUpdater           = (*Pusher)(nil)
	_ EndpointDeltaUpdater = (*Pusher)(nil)
	_ BatchUpdater         = (*Pusher)(nil)
	_ configstore.Flusher  = (*Pusher)(nil)
	_ target               = (*Pusher)(nil)
)

// NewPusher returns a Pusher that calls push, one call at a time, with no lock
// held, from the goroutine of Run. When push is called, the index and the
// registries already show what was asked for. The request is immutable. Push may
// ask for further pushes; it must not call Flush. If it panics, that is logged, and
// Retry makes up for it.
func NewPusher(push func(*PushRequest), opts ...PusherOptions) *Pusher {
	o := options.One("xdsupdate.NewPusher", opts)
	if o.DebounceAfter == 0 {
		o.DebounceAfter = 100 * time.Millisecond
	}
	if o.DebounceMax == 0 {
		o.DebounceMax = 500 * time.Millisecond
	}
	if o.SecurityMax == 0 {
		o.SecurityMax = 50 * time.Millisecond
	}
	if o.EndpointInterval == 0 {
		o.EndpointInterval = min(10*time.Millisecond, o.DebounceAfter)
	}
	p := &Pusher{
		push: push, opts: o, index: NewEndpointIndex(), epoch: time.Now(), wake: make(chan struct{}, 1),
		claims: newClaims(), sources: &sources{chains: map[configstore.ConfigStoreCache]*chain{}},
		configs:   pmap.Map[configKey, *configstore.Config]{}.Live(),
		services:  pmap.Map[*Source, sourceServices]{}.Live(),
		lanes:     newLanes(o),
		redefined: map[ConfigKey]struct{}{},
	}
	p.to = p
	return p
}

// Index returns the index that the updates are kept in.
func (p *Pusher) Index() *EndpointIndex { return p.index }

// Run pushes until stop is closed. What was asked for before, as a rule the initial
// state, is pushed at once. Run finishes the push that is running and leaves what
// waits. A second call panics.
func (p *Pusher) Run(stop <-chan struct{}) {
	p.start()
	defer p.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, changed := p.pushDue(stop)
		var due <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			due = timer.C
		}
		select {
		case <-stop:
			return
		case <-p.wake:
		case <-changed:
		case <-due:
		}
	}
}

// Flush pushes everything that was asked for before the call, without delay, and
// returns when that is done. While Run is running, its goroutine does it; before
// Run, Flush itself does, so that programs can do without; after Run has ended,
// Flush fails. The error is that, or the cause of the end of ctx, wrapped.
func (p *Pusher) Flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.flushLocked(ctx); err != nil {
		return fmt.Errorf("flush pushes: %w", err)
	}
	return nil
}

func (p *Pusher) flushLocked(ctx context.Context) error {
	all, endpoints := p.all.asked, p.endpoints.asked
	for {
		switch {
		case p.started && !p.running:
			return notify.ErrStopped
		case p.all.pushed >= all && p.endpoints.pushed >= endpoints:
			return nil
		}
		p.fix(forever)
		if !p.running && !p.pushing {
			p.pushLocked()
			continue
		}
		changed := p.changedLocked()
		p.mu.Unlock()
		p.poke()
		select {
		case <-changed:
			p.mu.Lock()
		case <-ctx.Done():
			p.mu.Lock()
			return context.Cause(ctx)
		}
	}
}

// pushDue pushes what is due. It returns how long to wait for what is due next,
// 0 if nothing is, and a channel that is closed when another push has ended, if
// one is running.
func (p *Pusher) pushDue(stop <-chan struct{}) (wait time.Duration, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		select {
		case <-stop:
			return 0, nil
		default:
		}
		if p.pushing {
			return 0, p.changedLocked()
		}
		now := p.now()
		switch next, ok := p.dueLocked(); {
		case !ok:
			return 0, nil
		case next > now:
			return next - now, nil
		}
		p.pushLocked()
	}
}

// pushLocked takes what is due and calls push, with the lock released.
func (p *Pusher) pushLocked() {
	p.pushing, p.finished.began = true, p.now()
	p.retryLocked(p.now())
	p.fix(p.now())
	all, endpoints := p.all.pushed, p.endpoints.pushed
	p.mu.Unlock()
	var t taken
	failed := true
	defer func() {
		p.mu.Lock()
		p.pushing = false
		p.all.pushed, p.endpoints.pushed = all, endpoints
		now := p.now()
		p.finished.end(t.request, p.epoch.Add(now), now-p.finished.began, failed)
		p.notifyLocked()
	}()
	captured := p.guarded("capture", func() { p.capture(&t) })
	request := t.request
	all, endpoints = max(all, t.all), max(endpoints, t.endpoints)
	if failed = !captured || !p.guarded("push", func() { p.push(request) }, slog.Any("request", request)); failed {
		p.Retry()
		return
	}
	if request.Full && request.Everything() {
		p.mu.Lock()
		p.retry.pushed()
		p.mu.Unlock()
	}
}

// taken is what one push takes: a request with the root that has what it is about, and how many
// requests of each lane will have been pushed with it.
type taken struct {
	request        *PushRequest
	root           *Root
	all, endpoints uint64
	// full: it is not for endpoints only.
	full bool
	// quiet: no registry was at a change. begun is how many were begun.
	quiet bool
	begun uint64
}

// maxReads is how often a push captures what registries disturb.
const maxReads = 4

// capture takes what is due, and has what it is about read, at one moment.
func (p *Pusher) capture(t *taken) {
	for reads := 1; ; reads++ {
		p.takeDue(t)
		if p.opts.Capture == nil || p.opts.Capture(t.request, t.root) || t.quiet && p.begun.Load() == t.begun || reads == maxReads {
			return
		}
	}
}

// takeDue adds what is due to what was taken for the same push before, and takes the root.
func (p *Pusher) takeDue(t *taken) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takeLocked(t)
	p.completeLocked(t.request)
	if !t.full && (t.request.Full || t.request.Everything()) {
		t.full = true
		p.takeLocked(t)
		p.completeLocked(t.request)
	}
	p.makeUpLocked(t.request)
	t.root = &Root{endpoints: EndpointSnapshot{p.index.snapshot()}, services: p.services.Snapshot(), configs: p.configs.Snapshot()}
	t.begun = p.begun.Load()
	t.quiet = t.begun == p.ended
}

// takeLocked takes what is due. What a full push reads has all that was asked for until
// then, whether it is due or not, so that the push takes that, too: it would have the one
// half of a batch, and not what depends on it.
func (p *Pusher) takeLocked(t *taken) {
	if t.full {
		p.all.fix(forever)
	}
	if t.request == nil || p.some() {
		t.full = t.full || p.all.atOnce
		request, all, endpoints := p.take(p.now())
		t.request, t.all, t.endpoints = t.request.Merge(request), max(t.all, all), max(t.endpoints, endpoints)
	}
}

// completeLocked makes a request full if the definition of one of its services has
// changed meanwhile. A full push shows services as they are now defined: the
// registries do so before they call SvcUpdate.
func (p *Pusher) completeLocked(request *PushRequest) {
	if request.Everything() && len(p.redefined) > 0 {
		request.Full = true
		clear(p.redefined)
	}
	for key := range request.ConfigsUpdated {
		if _, ok := p.redefined[key]; ok {
			request.Full = true
			delete(p.redefined, key)
		}
	}
}

func (p *Pusher) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		panic("xdsupdate: Pusher.Run was called twice")
	}
	p.started, p.running = true, true
	p.fix(forever)
}

func (p *Pusher) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
	p.notifyLocked()
}

// changedLocked returns a channel that is closed by the next notifyLocked.
func (p *Pusher) changedLocked() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

func (p *Pusher) notifyLocked() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// poke makes Run look again.
func (p *Pusher) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *Pusher) now() time.Duration { return time.Since(p.epoch) }
