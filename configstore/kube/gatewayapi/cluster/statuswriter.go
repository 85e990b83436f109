// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/statusqueue"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/options"
)

// The defaults of kube.StatusOptions.
const (
	defaultRate    = 100
	defaultWorkers = 4
)

// errNotLeading is what ends a write when another process may write.
var errNotLeading = errors.New("this process does not lead any more")

// StatusWriter writes the statuses of a Cache's objects, by one of many processes: that which has
// the Lease. A status that is right as the cache shows it takes no request, whoever has
// written it; one that somebody else has changed is repaired. A write is one request, for the state
// that the status was made of: after a conflict it is made anew of the next one, so that entries
// of other controllers are never lost. What has changed comes before what a new leader looks at.
// Create it with NewStatusWriter; a Cache has at most one.
type StatusWriter struct {
	cache    *Cache
	opts     kube.StatusOptions
	election *kube.Election
	now      func() time.Time
	ran      atomic.Bool
	written  atomic.Uint64
	queue    *statusqueue.Queue[gatewayapi.ObjectKey] // since Run
}

// NewStatusWriter returns the writer of the statuses of a cache's objects, which uses config for
// the Lease. The error is that of an unusable config. It needs patch of the statuses of the kinds
// of gateway.networking.k8s.io, and get, create and update of leases.coordination.k8s.io.
func NewStatusWriter(cache *Cache, config *rest.Config, opts ...kube.StatusOptions) (*StatusWriter, error) {
	o := options.One("cluster.NewStatusWriter", opts)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Rate <= 0 {
		o.Rate = defaultRate
	}
	if o.Workers < 1 {
		o.Workers = defaultWorkers
	}
	election, err := kube.NewElection(config, o)
	if err != nil {
		return nil, fmt.Errorf("cluster.NewStatusWriter: %w", err)
	}
	return &StatusWriter{cache: cache, opts: o, election: election, now: time.Now}, nil
}

// Leading reports whether this process is the one that writes.
func (w *StatusWriter) Leading() bool { return w.election.Leading() }

// Written is how many statuses this process has written.
func (w *StatusWriter) Written() uint64 { return w.written.Load() }

// Run writes statuses once the cache has synced, until stop is closed, while this process
// leads. The cache must run, too. A second call panics.
func (w *StatusWriter) Run(stop <-chan struct{}) {
	if w.ran.Swap(true) {
		panic("cluster: StatusWriter.Run was called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	w.queue = statusqueue.New[gatewayapi.ObjectKey]()
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	<-stop
	cancel()
	w.queue.ShutDown()
	running.Wait()
	w.election.Release()
}

func (w *StatusWriter) run(ctx context.Context) {
	if configstore.WaitForSync(ctx, w.cache) != nil {
		return // It was stopped.
	}
	w.cache.SubscribeStatuses(func(keys []gatewayapi.ObjectKey) {
		if !w.Leading() {
			return // Whoever becomes the leader looks at everything.
		}
		for _, key := range keys {
			w.queue.AddUrgent(key)
		}
	})
	defer w.cache.SubscribeStatuses(nil)
	limiter := rate.NewLimiter(rate.Limit(w.opts.Rate), int(w.opts.Rate)+1)
	var workers sync.WaitGroup
	defer workers.Wait()
	for range w.opts.Workers {
		workers.Go(func() { w.work(ctx, limiter) })
	}
	w.election.Run(ctx.Done(), w.sweep) //nolint:contextcheck // It ends with ctx.
}

// sweep has all objects looked at that have a status of ours.
func (w *StatusWriter) sweep() {
	for key := range w.cache.Snapshot().Statuses() {
		w.queue.Add(key)
	}
}

// work looks at what is queued, and writes at the limited rate, until the queue is shut down.
func (w *StatusWriter) work(ctx context.Context, limiter *rate.Limiter) {
	for {
		key, ended := w.queue.Get()
		if ended {
			return
		}
		var err error
		p := guard.Call(func() { err = w.look(ctx, key, limiter) })
		if p.Log(w.opts.Logger, "status writer", slog.String("object", key.String())); p != nil {
			err = p
		}
		w.queue.Done(key)
		if err == nil || ctx.Err() != nil {
			w.queue.Forget(key)
			continue
		}
		if p == nil && !errors.Is(err, configstore.ErrConflict) { // Somebody else was faster.
			w.opts.Logger.Warn("status was not written", slog.String("object", key.String()), slog.Any("error", err))
		}
		w.queue.AddRateLimited(key)
	}
}

// look writes the status of an object if it is not as it should be. It decides once it may write:
// what there is to say may have changed while it waited.
func (w *StatusWriter) look(ctx context.Context, key gatewayapi.ObjectKey, limiter *rate.Limiter) error {
	if _, pending, err := w.cache.PendingStatus(key, w.now()); !pending {
		return err
	}
	if !w.Leading() || limiter.Wait(ctx) != nil {
		return nil
	}
	remaining := w.election.Remaining()
	if remaining <= 0 {
		return errNotLeading
	}
	ctx, cancel := context.WithTimeoutCause(ctx, remaining, errNotLeading)
	defer cancel()
	config, pending, err := w.cache.PendingStatus(key, w.now())
	if !pending {
		return err
	}
	err = w.cache.objects.PatchStatus(ctx, config)
	if errors.Is(err, configstore.ErrNotFound) {
		return nil
	}
	if err == nil {
		w.written.Inc()
	}
	return err
}
