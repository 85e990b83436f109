// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/backoff"
)

// Lease writes objects that are deleted with their writer: when the lease expires, because nobody
// keeps it alive, or is revoked, etcd deletes all of them in one transaction, which is one batch of
// events. It reads from its cache. Create it with Cache.Grant and keep it alive with Run.
//
// Every write attaches the object to the lease, even without another change, so that a restarted
// writer takes over its previous objects. Writes of a Cache keep an object attached to its lease; a
// write of another Lease moves it there.
type Lease struct {
	configstore.Reader // of the cache
	cache              *Cache
	id                 clientv3.LeaseID
	ttl                time.Duration
}

var (
	_ configstore.ConfigStore = (*Lease)(nil)
	_ configstore.BatchWriter = (*Lease)(nil)
)

// Grant returns a lease that expires if it is not kept alive for ttl. The ttl is rounded up to
// seconds, and etcd may raise it to its minimum.
func (c *Cache) Grant(ctx context.Context, ttl time.Duration) (*Lease, error) {
	granted, err := c.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return nil, fmt.Errorf("grant a lease: %w", c.requestError(err))
	}
	return &Lease{Reader: c, cache: c, id: granted.ID, ttl: time.Duration(granted.TTL) * time.Second}, nil
}

// ID returns the lease's identity in etcd.
func (l *Lease) ID() clientv3.LeaseID { return l.id }

// Run keeps the lease alive until stop is closed, revokes it, and returns nil: its objects are then
// deleted. If the lease is lost before, because etcd was unavailable for longer than the lease's
// time to live or because somebody revoked it, Run returns an error that wraps ErrLeaseLost, at
// most a third of that time later. The objects are then deleted, or will be as soon as etcd
// notices, and further writes fail with ErrLeaseLost, too. In that case grant another lease and
// write the objects again. Run does not run the cache.
func (l *Lease) Run(stop <-chan struct{}) error {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	var stopping sync.WaitGroup
	defer stopping.Wait()
	defer cancel()
	stopping.Go(func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	})
	for expires := time.Now().Add(l.ttl); ; {
		kept, err := l.keepAlive(ctx)
		switch {
		case ctx.Err() != nil:
			return l.revoke()
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return fmt.Errorf("%w: %w", ErrLeaseLost, err)
		case err == nil:
			expires = kept
		case time.Now().After(expires):
			return fmt.Errorf("%w: it could not be kept alive: %w", ErrLeaseLost, err)
		}
		backoff.Sleep(ctx, l.ttl/3)
	}
}

// keepAlive renews the lease, and returns the earliest time of its expiry.
func (l *Lease) keepAlive(ctx context.Context) (expires time.Time, err error) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.ttl/3)
	defer cancel()
	kept, err := l.cache.client.KeepAliveOnce(ctx, l.id)
	if err != nil {
		return asked, err
	}
	return asked.Add(time.Duration(kept.TTL) * time.Second), nil
}

func (l *Lease) revoke() error {
	ctx, cancel := l.cache.timeout()
	defer cancel()
	if _, err := l.cache.client.Revoke(ctx, l.id); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("revoke the lease: %w", l.cache.requestError(err))
	}
	return nil
}

// Create implements ConfigStore, under the lease.
func (l *Lease) Create(config configstore.Config) (revision string, err error) {
	return l.cache.write(l, configstore.Mutation{Op: configstore.OpCreate, Config: config})
}

// Update implements ConfigStore, under the lease.
func (l *Lease) Update(config configstore.Config) (revision string, err error) {
	return l.cache.write(l, configstore.Mutation{Op: configstore.OpUpdate, Config: config})
}

// UpdateStatus implements ConfigStore, under the lease.
func (l *Lease) UpdateStatus(config configstore.Config) (revision string, err error) {
	return l.cache.write(l, configstore.Mutation{Op: configstore.OpUpdateStatus, Config: config})
}

// Delete implements ConfigStore.
func (l *Lease) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	return l.cache.remove(l, kind, name, namespace, resourceVersion)
}

// Apply implements configstore.BatchWriter, under the lease.
func (l *Lease) Apply(mutations ...configstore.Mutation) (revision uint64, err error) {
	return l.cache.applyAll(l, mutations)
}
