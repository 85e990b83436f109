// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/time/rate"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
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

// StatusWriter writes the addresses of the gateways into status.loadBalancer of the
// Ingresses that are ours, by one of many processes: that which has the Lease. A status that
// is right as the cache shows it takes no request, whoever has written it; one that somebody
// else has changed is repaired, at the rate of Options. What an Ingress has that is not ours,
// or not ours any more, is left alone. Create it with NewStatusWriter; a Cache has at most
// one.
type StatusWriter struct {
	cache    *Cache
	client   kubernetes.Interface
	opts     kube.StatusOptions
	election *kube.Election
	ran      atomic.Bool
	queue    workqueue.TypedRateLimitingInterface[Key]
}

// NewStatusWriter returns the writer of the statuses of a cache's Ingresses, which uses config
// for them and for the Lease. The error is that of an unusable config. It needs get of
// ingresses.networking.k8s.io, update of their status, and get, create and update of
// leases.coordination.k8s.io.
func NewStatusWriter(cache *Cache, config *rest.Config, opts ...kube.StatusOptions) (*StatusWriter, error) {
	o := options.One("ingress.NewStatusWriter", opts)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Rate <= 0 {
		o.Rate = defaultRate
	}
	if o.Workers < 1 {
		o.Workers = defaultWorkers
	}
	client, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("ingress.NewStatusWriter: %w", err)
	}
	election, err := kube.NewElection(config, o)
	if err != nil {
		return nil, fmt.Errorf("ingress.NewStatusWriter: %w", err)
	}
	return &StatusWriter{cache: cache, client: client, opts: o, election: election}, nil
}

// Leading reports whether this process is the one that writes.
func (w *StatusWriter) Leading() bool { return w.election.Leading() }

// Run writes statuses once the cache has synced, until stop is closed, while this process
// leads. The cache must run, too. A second call panics.
func (w *StatusWriter) Run(stop <-chan struct{}) {
	if w.ran.Swap(true) {
		panic("ingress: StatusWriter.Run was called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	w.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[Key](time.Second, time.Minute))
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
	w.cache.onStatus(func(key Key) {
		if w.Leading() { // Whoever becomes the leader looks at everything.
			w.queue.Add(key)
		}
	})
	defer w.cache.onStatus(nil)
	limiter := rate.NewLimiter(rate.Limit(w.opts.Rate), int(w.opts.Rate)+1)
	var workers sync.WaitGroup
	defer workers.Wait()
	for range w.opts.Workers {
		workers.Go(func() { w.work(ctx, limiter) })
	}
	w.election.Run(ctx.Done(), w.sweep) //nolint:contextcheck // It ends with ctx.
}

// sweep has all Ingresses of ours looked at.
func (w *StatusWriter) sweep() {
	for key := range w.cache.Snapshot().Ours() {
		w.queue.Add(key)
	}
}

// work looks at what is queued, and writes at the limited rate, until the queue is shut
// down.
func (w *StatusWriter) work(ctx context.Context, limiter *rate.Limiter) {
	for {
		key, ended := w.queue.Get()
		if ended {
			return
		}
		var err error
		p := guard.Call(func() {
			if _, differs := w.cache.wanted(key); differs && w.Leading() && limiter.Wait(ctx) == nil {
				err = w.write(ctx, key)
			}
		})
		if p.Log(w.opts.Logger, "status writer", slog.String("object", "Ingress "+key.String())); p != nil {
			err = p
		}
		w.queue.Done(key)
		if err == nil || ctx.Err() != nil {
			w.queue.Forget(key)
			continue
		}
		if p == nil && !apierrors.IsConflict(err) { // Somebody else was faster.
			w.opts.Logger.Warn("status was not written", slog.String("object", "Ingress "+key.String()), slog.Any("error", err))
		}
		w.queue.AddRateLimited(key)
	}
}

// write reads an Ingress, decides anew, and writes. Its requests end with the leadership.
func (w *StatusWriter) write(ctx context.Context, key Key) error {
	remaining := w.election.Remaining()
	if remaining <= 0 {
		return errNotLeading
	}
	ctx, cancel := context.WithTimeoutCause(ctx, remaining, errNotLeading)
	defer cancel()
	client := w.client.NetworkingV1().Ingresses(key.Namespace)
	o, err := client.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	addresses, differs := w.cache.wanted(key)
	if !differs || sameAddresses(o.Status.LoadBalancer.Ingress, addresses) {
		return nil // The cache has learnt of it meanwhile, or will.
	}
	o.Status.LoadBalancer = networkingv1.IngressLoadBalancerStatus{Ingress: addresses}
	_, err = client.UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return err
}

// onStatus has look called with each Ingress whose status, as it is or should be, has
// changed; nil: nobody is called any more.
func (c *Cache) onStatus(look func(Key)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look = look
}
