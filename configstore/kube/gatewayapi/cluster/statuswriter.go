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
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/statusqueue"
	"github.com/pilotkit/pilotkit/internal/options"
)

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
		o.Rate = statusqueue.DefaultRate
	}
	if o.Workers < 1 {
		o.Workers = statusqueue.DefaultWorkers
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
	defer w.queue.Start(ctx, statusqueue.Work[gatewayapi.ObjectKey]{
		Rate: w.opts.Rate, Workers: w.opts.Workers, Logger: w.opts.Logger, Object: gatewayapi.ObjectKey.String,
		Remaining: w.election.Remaining, Pending: w.pending, Write: w.write,
	})()
	w.election.Run(ctx.Done(), w.sweep) //nolint:contextcheck // It ends with ctx.
}

// sweep has all objects looked at that have a status of ours.
func (w *StatusWriter) sweep() {
	for key := range w.cache.Snapshot().Statuses() {
		w.queue.Add(key)
	}
}

func (w *StatusWriter) pending(key gatewayapi.ObjectKey) (bool, error) {
	_, pending, err := w.cache.PendingStatus(key, w.now())
	return pending, err
}

// write writes the status of an object if it is still not as it should be: what there is to say may
// have changed while it waited.
func (w *StatusWriter) write(ctx context.Context, key gatewayapi.ObjectKey) error {
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
