// SPDX-License-Identifier: Apache-2.0

// Package statuswriter writes the statuses of the objects of a converter, from the one process that
// a Lease elects. It contains the logic that is independent of the kind of objects.
package statuswriter

import (
	"context"
	"iter"
	"log/slog"
	"sync"

	"go.uber.org/atomic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/statusqueue"
)

// Statuses provides the statuses that a Writer writes.
type Statuses[K comparable] struct {
	// Package is the package of the exported writer, for messages.
	Package string
	// Cache must have synced before the first write.
	Cache configstore.Syncer
	// Subscribe sets the function that is called with objects whose present or wanted status has
	// changed; nil removes it.
	Subscribe func(look func(keys ...K))
	// Ours returns all objects with a wanted status.
	Ours func() iter.Seq[K]
	// Object returns the name of an object for the log.
	Object func(K) string
	// Pending reports whether the status of an object has to be written.
	Pending func(K) (bool, error)
	// Write writes the status if it still has to be written. The context ends when this process may
	// not write any more.
	Write func(ctx context.Context, key K) error
}

// Writer writes statuses. New changes have priority over the objects that a new leader checks.
type Writer[K comparable] struct {
	statuses Statuses[K]
	opts     kube.StatusOptions
	election *kube.Election
	ran      atomic.Bool
	queue    *statusqueue.Queue[K] // set by Run
}

// New returns a writer that uses config for the Lease. It returns an error if config is unusable.
func New[K comparable](config *rest.Config, o kube.StatusOptions, s Statuses[K]) (*Writer[K], error) {
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
		return nil, err
	}
	return &Writer[K]{statuses: s, opts: o, election: election}, nil
}

// Leading reports whether this process is the one that writes.
func (w *Writer[K]) Leading() bool { return w.election.Leading() }

// Run writes statuses once the cache has synced, until stop is closed, while this process
// leads. A second call panics.
func (w *Writer[K]) Run(stop <-chan struct{}) {
	if w.ran.Swap(true) {
		panic(w.statuses.Package + ": StatusWriter.Run was called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	w.queue = statusqueue.New[K]()
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	<-stop
	cancel()
	w.queue.ShutDown()
	running.Wait()
	w.election.Release()
}

func (w *Writer[K]) run(ctx context.Context) {
	if configstore.WaitForSync(ctx, w.statuses.Cache) != nil {
		return // stopped before the sync
	}
	w.statuses.Subscribe(func(keys ...K) {
		if !w.Leading() {
			return // A new leader checks all objects.
		}
		for _, key := range keys {
			w.queue.AddUrgent(key)
		}
	})
	defer w.statuses.Subscribe(nil)
	defer w.queue.Start(ctx, statusqueue.Work[K]{
		Rate: w.opts.Rate, Workers: w.opts.Workers, Logger: w.opts.Logger, Remaining: w.election.Remaining,
		Object: w.statuses.Object, Pending: w.statuses.Pending, Write: w.statuses.Write,
	})()
	w.election.Run(ctx.Done(), w.sweep) //nolint:contextcheck // It ends with ctx.
}

// sweep enqueues all objects with a wanted status.
func (w *Writer[K]) sweep() {
	for key := range w.statuses.Ours() {
		w.queue.Add(key)
	}
}
