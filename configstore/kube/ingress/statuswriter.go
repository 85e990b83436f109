// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"context"
	"fmt"
	"iter"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/follow"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/statuswriter"
	"github.com/pilotkit/pilotkit/internal/options"
)

// StatusWriter writes the addresses of the gateways into status.loadBalancer of our Ingresses. A
// Lease elects the one process that writes. A correct cached status takes no request, and foreign
// changes are repaired at the rate of the options. The status of an Ingress that is not ours, or
// not ours any more, is left alone. Create it with NewStatusWriter; a Cache has at most one.
type StatusWriter struct {
	cache  *Cache
	client kubernetes.Interface
	writer *statuswriter.Writer[Key]
}

// NewStatusWriter returns a writer for the statuses of a cache's Ingresses. It uses config for them
// and for the Lease, and returns an error if config is unusable. It needs get of
// ingresses.networking.k8s.io, update of their status, and get, create and update of
// leases.coordination.k8s.io.
func NewStatusWriter(cache *Cache, config *rest.Config, opts ...kube.StatusOptions) (*StatusWriter, error) {
	client, err := follow.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("ingress.NewStatusWriter: %w", err)
	}
	o := options.One("ingress.NewStatusWriter", opts)
	election, err := kube.NewElection(config, o)
	if err != nil {
		return nil, fmt.Errorf("ingress.NewStatusWriter: %w", err)
	}
	w := &StatusWriter{cache: cache, client: client}
	w.writer = &statuswriter.Writer[Key]{
		Name: "ingress: StatusWriter", Election: election, Cache: cache, Listen: w.listen,
		Ours:   func() iter.Seq[Key] { return cache.Snapshot().Ours() },
		Object: func(key Key) string { return "Ingress " + key.String() }, Pending: w.pending, Write: w.write,
		Rate: o.Rate, Workers: o.Workers, Logger: o.Logger,
	}
	return w, nil
}

// Leading reports whether this process is the one that writes.
func (w *StatusWriter) Leading() bool { return w.writer.Leading() }

// Run writes statuses once the cache has synced, until stop is closed, while this process
// leads. The cache must run, too. A second call panics.
func (w *StatusWriter) Run(stop <-chan struct{}) { w.writer.Run(stop) }

func (w *StatusWriter) listen() (end func()) {
	w.cache.onStatus(w.writer.Changed)
	return func() { w.cache.onStatus(nil) }
}

func (w *StatusWriter) pending(key Key) (bool, error) {
	_, differs := w.cache.wanted(key)
	return differs, nil
}

// write reads an Ingress and writes its status if it still differs.
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
		return nil // The cache has received the change meanwhile, or will.
	}
	o.Status.LoadBalancer = networkingv1.IngressLoadBalancerStatus{Ingress: addresses}
	_, err = client.UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return err
}

// onStatus sets the function that is called with Ingresses whose present or wanted status has
// changed; nil removes it.
func (c *Cache) onStatus(look func(...Key)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look = look
}
