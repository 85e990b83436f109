// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.uber.org/atomic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/statuswriter"
	"github.com/pilotkit/pilotkit/internal/options"
)

// StatusWriter writes the statuses of a Cache's objects. A Lease elects the one process that
// writes. A correct cached status takes no request, and foreign changes are repaired. Each write is
// one request, conditional on the version of the object that it was computed from. After a conflict
// the status is computed again from the new object, so that entries of other controllers are never
// lost. New changes have priority over the objects that a new leader checks. Create it with
// NewStatusWriter; a Cache has at most one.
type StatusWriter struct {
	cache   *Cache
	writer  *statuswriter.Writer[gatewayapi.ObjectKey]
	now     func() time.Time
	written atomic.Uint64
}

// NewStatusWriter returns a writer for the statuses of a cache's objects. It uses config for the
// Lease, and returns an error if config is unusable. It needs patch of the statuses of the kinds of
// gateway.networking.k8s.io, and get, create and update of leases.coordination.k8s.io.
func NewStatusWriter(cache *Cache, config *rest.Config, opts ...kube.StatusOptions) (*StatusWriter, error) {
	o := options.One("cluster.NewStatusWriter", opts)
	election, err := kube.NewElection(config, o)
	if err != nil {
		return nil, fmt.Errorf("cluster.NewStatusWriter: %w", err)
	}
	w := &StatusWriter{cache: cache, now: time.Now}
	w.writer = &statuswriter.Writer[gatewayapi.ObjectKey]{
		Name: "cluster: StatusWriter", Election: election, Cache: cache, Listen: w.listen, Ours: w.ours,
		Object: gatewayapi.ObjectKey.String, Pending: w.pending, Write: w.write,
		Rate: o.Rate, Workers: o.Workers, Logger: o.Logger,
	}
	return w, nil
}

// Leading reports whether this process is the one that writes.
func (w *StatusWriter) Leading() bool { return w.writer.Leading() }

// Written returns the number of statuses that this process has written.
func (w *StatusWriter) Written() uint64 { return w.written.Load() }

// Run writes statuses once the cache has synced, until stop is closed, while this process
// leads. The cache must run, too. A second call panics.
func (w *StatusWriter) Run(stop <-chan struct{}) { w.writer.Run(stop) }

func (w *StatusWriter) listen() (end func()) {
	w.cache.SubscribeStatuses(func(keys []gatewayapi.ObjectKey) { w.writer.Changed(keys...) })
	return func() { w.cache.SubscribeStatuses(nil) }
}

func (w *StatusWriter) ours() iter.Seq[gatewayapi.ObjectKey] {
	return func(yield func(gatewayapi.ObjectKey) bool) {
		for key := range w.cache.Snapshot().Statuses() {
			if !yield(key) {
				return
			}
		}
	}
}

func (w *StatusWriter) pending(key gatewayapi.ObjectKey) (bool, error) {
	_, pending, err := w.cache.PendingStatus(key, w.now())
	return pending, err
}

// write writes the status of an object if it still differs from the wanted one, which may have
// changed since the object was enqueued.
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
