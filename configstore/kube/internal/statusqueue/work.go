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
	// DefaultRate is how many statuses are written per second if nobody says otherwise.
	DefaultRate = 100
	// DefaultWorkers is how many are written at the same time.
	DefaultWorkers = 4
)

// errNotLeading is what ends a write when another process may write.
var errNotLeading = errors.New("this process does not lead any more")

// Work is what is done with the objects of a queue.
type Work[K comparable] struct {
	// Rate is the largest number of writes per second, Workers how many there are at the
	// same time. Both are positive.
	Rate    float64
	Workers int
	// Logger gets each status that could not be written, and will be tried again; not
	// those for which somebody else was faster.
	Logger *slog.Logger
	// Object is how the log names an object.
	Object func(K) string
	// Remaining is how long this process may write; not positive: it may not.
	Remaining func() time.Duration
	// Pending reports whether the status of an object has to be written.
	Pending func(K) (bool, error)
	// Write writes it. The context ends when this process may not write any more.
	Write func(ctx context.Context, key K) error
}

// Start has workers look at what is queued until the queue is shut down. What is being
// written then ends with ctx. The returned function waits for the workers.
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

// finish looks at an object, and queues it again if that fails.
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

// look writes the status of an object if that is not what it should be, and if this process
// leads: whoever becomes the leader looks at everything.
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
