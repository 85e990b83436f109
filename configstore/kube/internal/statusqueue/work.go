// SPDX-License-Identifier: Apache-2.0

package statusqueue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
)

const (
	// DefaultRate is the default number of status writes per second.
	DefaultRate = 100
	// DefaultWorkers is the default number of concurrent writes.
	DefaultWorkers = 4
)

// errNotLeading ends a write because another process may write.
var errNotLeading = errors.New("this process does not lead any more")

// Work processes the objects of a queue.
type Work[K comparable] struct {
	// Rate is the maximum number of writes per second, and Workers the number of concurrent writes.
	// Both are positive.
	Rate    float64
	Workers int
	// Logger gets each failed write, which will be retried, except for conflicts.
	Logger *slog.Logger
	// Object returns the name of an object for the log.
	Object func(K) string
	// Remaining returns how long this process may write. It may not write if the result is not
	// positive.
	Remaining func() time.Duration
	// Pending reports whether the status of an object has to be written.
	Pending func(K) (bool, error)
	// Write writes the status. The context ends when this process may not write any more.
	Write func(ctx context.Context, key K) error
}

// Start starts workers that process the queue until it is shut down. Writes in progress end with
// ctx. The returned function waits for the workers.
func (q *Queue[K]) Start(ctx context.Context, w Work[K]) (wait func()) {
	limiter := rate.NewLimiter(rate.Limit(w.Rate), int(w.Rate)+1)
	var workers sync.WaitGroup
	for range w.Workers {
		workers.Go(func() {
			for {
				key, ended := q.Get()
				if ended {
					return
				}
				q.finish(ctx, &w, key, func() error { return w.look(ctx, key, limiter) })
			}
		})
	}
	return workers.Wait
}

// finish processes an object, and enqueues it again if that fails.
func (q *Queue[K]) finish(ctx context.Context, w *Work[K], key K, look func() error) {
	var err error
	p := guard.Call(func() { err = look() })
	if p.Log(w.Logger, "status writer", slog.String("object", w.Object(key))); p != nil {
		err = p
	}
	q.Done(key)
	if err == nil || ctx.Err() != nil {
		q.Forget(key)
		return
	}
	if p == nil && !apierrors.IsConflict(err) && !errors.Is(err, configstore.ErrConflict) {
		w.Logger.Warn("status was not written", slog.String("object", w.Object(key)), slog.Any("error", err))
	}
	q.AddRateLimited(key)
}

// look writes the status of an object if it differs from the wanted one and if this process leads.
// A new leader checks all objects.
func (w *Work[K]) look(ctx context.Context, key K, limiter *rate.Limiter) error {
	if w.Remaining() <= 0 {
		return nil
	}
	if pending, err := w.Pending(key); !pending {
		return err
	}
	if limiter.Wait(ctx) != nil {
		return nil
	}
	remaining := w.Remaining()
	if remaining <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, remaining, errNotLeading)
	defer cancel()
	return w.Write(ctx, key)
}
