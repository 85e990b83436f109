// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// The defaults of a Writer: the status writes per second, and the concurrent ones.
const (
	defaultRate    = 100
	defaultWorkers = 4
)

// errNotLeading ends a write because another process may write.
var errNotLeading = errors.New("this process does not lead any more")

// Election elects the one process that writes: a kube.Election.
type Election interface {
	// Run is a candidate until stop is closed, and calls elected when this process becomes the leader.
	Run(stop <-chan struct{}, elected func())
	// Remaining returns how long this process may write. It may not write if the result is not
	// positive.
	Remaining() time.Duration
	// Release lets another process lead at once. It is called after Run.
	Release()
}

// Writer writes the statuses of objects while this process leads. Fill in the fields, and call Run.
type Writer[K comparable] struct {
	// Name is the name of the exported writer, for messages.
	Name     string
	Election Election
	// Cache must have synced before the first write.
	Cache configstore.Syncer
	// Listen has objects whose present or wanted status has changed enqueued until end is called.
	Listen func() (end func())
	// Ours returns all objects with a wanted status.
	Ours func() iter.Seq[K]
	// Object returns the name of an object for the log.
	Object func(K) string
	// Pending reports whether the status of an object has to be written.
	Pending func(K) (bool, error)
	// Write writes the status if it still has to be written. The context ends when this process may
	// not write any more.
	Write func(ctx context.Context, key K) error
	// Rate is the maximum number of writes per second. Default: 100.
	Rate float64
	// Workers is the number of concurrent writes. Default: 4.
	Workers int
	// Logger gets each failed write, which will be retried, except for conflicts. Default: nil,
	// which discards.
	Logger *slog.Logger

	// Queue contains the objects to check. Run sets Queue, which is used while this process leads.
	*Queue[K]
	ran atomic.Bool
}

// Leading reports whether this process is the one that writes.
func (w *Writer[K]) Leading() bool { return w.Election.Remaining() > 0 }

// Changed enqueues objects, which come before the objects that a new leader checks. Without leadership
// Changed does nothing, because a new leader checks all objects.
func (w *Writer[K]) Changed(keys ...K) {
	if w.Leading() {
		for _, key := range keys {
			w.AddUrgent(key)
		}
	}
}

// Run writes statuses once the cache has synced, until stop is closed. A second call panics.
func (w *Writer[K]) Run(stop <-chan struct{}) {
	if w.ran.Swap(true) {
		panic(w.Name + ".Run was called twice")
	}
	if w.Rate <= 0 {
		w.Rate = defaultRate
	}
	if w.Workers < 1 {
		w.Workers = defaultWorkers
	}
	if w.Logger == nil {
		w.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	w.Queue = newQueue[K]()
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	<-stop
	cancel()
	w.ShutDown()
	running.Wait()
	w.Election.Release()
}

func (w *Writer[K]) run(ctx context.Context) {
	if configstore.WaitForSync(ctx, w.Cache) != nil {
		return // stopped before the sync
	}
	defer w.Listen()()
	limiter := rate.NewLimiter(rate.Limit(w.Rate), int(w.Rate)+1)
	var workers sync.WaitGroup
	defer workers.Wait()
	for range w.Workers {
		workers.Go(func() {
			for key, ended := w.Get(); !ended; key, ended = w.Get() {
				w.finish(ctx, key, func() error { return w.look(ctx, key, limiter) })
			}
		})
	}
	w.Election.Run(ctx.Done(), func() {
		for key := range w.Ours() {
			w.Add(key)
		}
	})
}

// finish processes an object, and enqueues it again if that fails.
func (w *Writer[K]) finish(ctx context.Context, key K, look func() error) {
	var err error
	p := guard.Call(func() { err = look() })
	if p.Log(w.Logger, "status writer", slog.String("object", w.Object(key))); p != nil {
		err = p
	}
	w.Done(key)
	if err == nil || ctx.Err() != nil {
		w.Forget(key)
		return
	}
	if p == nil && !apierrors.IsConflict(err) && !errors.Is(err, configstore.ErrConflict) {
		w.Logger.Warn("status was not written", slog.String("object", w.Object(key)), slog.Any("error", err))
	}
	w.AddRateLimited(key)
}

// look writes the status of an object if it differs from the wanted one and if this process leads.
// A new leader checks all objects.
func (w *Writer[K]) look(ctx context.Context, key K, limiter *rate.Limiter) error {
	if !w.Leading() {
		return nil
	}
	if pending, err := w.Pending(key); !pending {
		return err
	}
	if limiter.Wait(ctx) != nil {
		return nil
	}
	remaining := w.Election.Remaining()
	if remaining <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, remaining, errNotLeading)
	defer cancel()
	return w.Write(ctx, key)
}
