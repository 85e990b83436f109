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

// Debounce decides how long requests wait for others, to be pushed with them. The zero value has
// defaults.
type Debounce struct {
	// After is the quiet time: a full request waits until no other full request has arrived
	// for this long. The default is 100 ms. A negative value means that requests of all kinds are
	// pushed as soon as the previous push has ended.
	After time.Duration
	// Max is the maximum delay of a full request. The default is 500 ms, so that a push
	// starts within a second under any load. With the 10 s of Istio 1.30, a client that writes an
	// object every 50 ms delays the changes of all others by 10 s.
	Max time.Duration
	// SecurityMax is the maximum delay of a full request with an object of the group
	// security.istio.io, because the object may restrict access. Such a request is pushed together
	// with all pending full requests. The default is 50 ms, so that the push starts within 100 ms.
	// A negative value means no special treatment.
	SecurityMax time.Duration
	// LeadingEdge pushes a full request immediately if there was no request and no push in the
	// quiet time before. By default it waits for related requests.
	LeadingEdge bool
	// EndpointInterval is the minimum time between a push of endpoints and the next push of
	// endpoints only. Changes in between are merged. The default is 10 ms, or After if that
	// is less. A negative value means no interval.
	EndpointInterval time.Duration
	// Endpoints makes requests for endpoints only wait like full ones, as
	// Istio 1.30 does by default.
	Endpoints bool
}

func (d Debounce) withDefaults() Debounce {
	if d.After == 0 {
		d.After = 100 * time.Millisecond
	}
	if d.Max == 0 {
		d.Max = 500 * time.Millisecond
	}
	if d.SecurityMax == 0 {
		d.SecurityMax = 50 * time.Millisecond
	}
	if d.EndpointInterval == 0 {
		d.EndpointInterval = min(10*time.Millisecond, d.After)
	}
	return d
}

// PusherOptions are the options of a Pusher. The zero value works.
type PusherOptions struct {
	// Logger gets an error, with the stack, for each panic of a push and of a function of
	// PusherOptions. The default, nil, discards.
	Logger *slog.Logger
	// Debounce decides when a request is pushed.
	Debounce Debounce
	// Capture is called before each push, on the goroutine of the push and without a lock, and
	// reads the additional input of the push. It returns true if that input is consistent with the
	// root. If it is not, and a registry has been in an update since the root was taken, Capture is
	// called again with the then current root and request, at most a few times. The last call
	// counts. If it panics, there is no push, and Retry compensates for it. A nil Capture reads
	// nothing and is consistent.
	Capture func(*PushRequest, *Root) (exact bool)
	// ProxyUpdate is called for each ProxyUpdate after its update was applied, by the goroutine of
	// the caller or by another goroutine that is making such calls. By default nothing happens,
	// because a Pusher does not know proxies.
	ProxyUpdate func(cluster registry.ClusterID, ip string)
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
	facade
	push  func(*PushRequest)
	opts  PusherOptions
	index *EndpointIndex
	epoch time.Time
	wake  chan struct{} // capacity 1; a token means that Run must look again
	// begun counts the updates that registries have begun.
	begun atomic.Uint64
	// after are the calls of ProxyUpdate.
	after calls[func()]

	// mu guards the fields below. Updates are applied with mu held, and a push takes its request
	// and its root together.
	mu     sync.Mutex
	claims claims
	// sources has the chains of the followed caches. It is set before there are any.
	sources *sources
	configs *pmap.Live[configKey, *configstore.Config]
	// values are the values of sources. ended counts the applied updates.
	values *pmap.Live[*Source, sourceValue]
	ended  uint64
	lanes
	// redefined are the services with a SvcUpdate since their last full push.
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

// NewPusher returns a Pusher that calls push from the goroutine of Run, one call at a time and
// without a lock. The index and the registries show the changes of a request before push is called.
// The request is immutable. Push may request further pushes, but must not call Flush. A panic of
// push is logged, and Retry compensates for it.
func NewPusher(push func(*PushRequest), opts ...PusherOptions) *Pusher {
	o := options.One("xdsupdate.NewPusher", opts)
	o.Debounce = o.Debounce.withDefaults()
	p := &Pusher{
		push: push, opts: o, index: NewEndpointIndex(), epoch: time.Now(), wake: make(chan struct{}, 1),
		claims: newClaims(), sources: &sources{chains: map[configstore.ConfigStoreCache]*chain{}},
		configs:   pmap.Map[configKey, *configstore.Config]{}.Live(),
		values:    pmap.Map[*Source, sourceValue]{}.Live(),
		lanes:     newLanes(o.Debounce),
		redefined: map[ConfigKey]struct{}{},
	}
	p.to = p
	return p
}

// Index returns the index of the endpoints.
func (p *Pusher) Index() *EndpointIndex { return p.index }

// Run pushes until stop is closed. Requests made before Run, usually for the initial state, are
// pushed immediately. Run finishes the running push and leaves other requests pending. A second
// call panics.
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

// Flush pushes all requests made before the call without delay, and returns when that is done. The
// goroutine of Run makes the pushes. Before Run, Flush makes them itself, so Run is optional. After
// Run has ended, Flush fails. The error is notify.ErrStopped or the cause of the end of ctx,
// wrapped.
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

// pushDue pushes the due requests. It returns the delay until the next one is due, or 0 if there is
// none, and, if another push is running, a channel that is closed at its end.
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
		switch next := p.dueLocked(); {
		case next == forever:
			return 0, nil
		case next > now:
			return next - now, nil
		}
		p.pushLocked()
	}
}

// pushLocked takes the due requests and calls push with the lock released.
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

// taken is the input of one push: its request, its root, and the number of pushed requests of each
// lane including it.
type taken struct {
	request        *PushRequest
	root           *Root
	all, endpoints uint64
	// full means that the push is not for endpoints only.
	full bool
	// quiet means that no registry was in an update. begun is the number of begun updates.
	quiet bool
	begun uint64
}

// maxReads is the maximum number of captures of a push.
const maxReads = 4

// capture takes the due requests with a root, and repeats that until Capture is consistent with the
// root.
func (p *Pusher) capture(t *taken) {
	for reads := 1; ; reads++ {
		p.takeDue(t)
		if p.opts.Capture == nil || p.opts.Capture(t.request, t.root) || t.quiet && p.begun.Load() == t.begun || reads == maxReads {
			return
		}
	}
}

// takeDue adds the due requests to the input of the push, and takes the root.
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
	t.root = &Root{endpoints: EndpointSnapshot{p.index.snapshot()}, sources: p.values.Snapshot(), configs: p.configs.Snapshot()}
	t.begun = p.begun.Load()
	t.quiet = t.begun == p.ended
}

// takeLocked takes the due requests. A full push also takes all other pending requests, because its
// root already has their changes.
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
