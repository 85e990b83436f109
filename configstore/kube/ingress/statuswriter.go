// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"go.uber.org/atomic"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/statusqueue"
	"github.com/pilotkit/pilotkit/internal/options"
)

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
	queue    *statusqueue.Queue[Key] // since Run
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
		o.Rate = statusqueue.DefaultRate
	}
	if o.Workers < 1 {
		o.Workers = statusqueue.DefaultWorkers
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
	w.queue = statusqueue.New[Key]()
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
			w.queue.AddUrgent(key)
		}
	})
	defer w.cache.onStatus(nil)
	defer w.queue.Start(ctx, statusqueue.Work[Key]{
		Rate: w.opts.Rate, Workers: w.opts.Workers, Logger: w.opts.Logger, Object: func(key Key) string { return "Ingress " + key.String() },
		Remaining: w.election.Remaining, Pending: w.pending, Write: w.write,
	})()
	w.election.Run(ctx.Done(), w.sweep) //nolint:contextcheck // It ends with ctx.
}

// sweep has all Ingresses of ours looked at.
func (w *StatusWriter) sweep() {
	for key := range w.cache.Snapshot().Ours() {
		w.queue.Add(key)
	}
}

func (w *StatusWriter) pending(key Key) (bool, error) {
	_, differs := w.cache.wanted(key)
	return differs, nil
}

// write reads an Ingress, decides anew, and writes.
func (w *StatusWriter) write(ctx context.Context, key Key) error {
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
