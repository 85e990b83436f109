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

// StatusWriter writes the statuses of a Cache's objects, by one of many processes: that which has
// the Lease. A status that is right as the cache shows it takes no request, whoever has
// written it; one that somebody else has changed is repaired. A write is one request, for the state
// that the status was made of: after a conflict it is made anew of the next one, so that entries
// of other controllers are never lost. What has changed comes before what a new leader looks at.
// Create it with NewStatusWriter; a Cache has at most one.
type StatusWriter struct {
	cache   *Cache
	writer  *statuswriter.Writer[gatewayapi.ObjectKey]
	now     func() time.Time
	written atomic.Uint64
}

// NewStatusWriter returns the writer of the statuses of a cache's objects, which uses config for
// the Lease. The error is that of an unusable config. It needs patch of the statuses of the kinds
// of gateway.networking.k8s.io, and get, create and update of leases.coordination.k8s.io.
func NewStatusWriter(cache *Cache, config *rest.Config, opts ...kube.StatusOptions) (*StatusWriter, error) {
	w := &StatusWriter{cache: cache, now: time.Now}
	var err error
	w.writer, err = statuswriter.New(config, options.One("cluster.NewStatusWriter", opts), statuswriter.Statuses[gatewayapi.ObjectKey]{
		Package: "cluster", Cache: cache, Subscribe: w.subscribe, Ours: w.ours, Object: gatewayapi.ObjectKey.String,
		Pending: w.pending, Write: w.write,
	})
	if err != nil {
		return nil, fmt.Errorf("cluster.NewStatusWriter: %w", err)
	}
	return w, nil
}

// Leading reports whether this process is the one that writes.
func (w *StatusWriter) Leading() bool { return w.writer.Leading() }

// Written is how many statuses this process has written.
func (w *StatusWriter) Written() uint64 { return w.written.Load() }

// Run writes statuses once the cache has synced, until stop is closed, while this process
// leads. The cache must run, too. A second call panics.
func (w *StatusWriter) Run(stop <-chan struct{}) { w.writer.Run(stop) }

func (w *StatusWriter) subscribe(look func(...gatewayapi.ObjectKey)) {
	if look == nil {
		w.cache.SubscribeStatuses(nil)
		return
	}
	w.cache.SubscribeStatuses(func(keys []gatewayapi.ObjectKey) { look(keys...) })
}

// ours returns all objects that have a status of ours.
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
