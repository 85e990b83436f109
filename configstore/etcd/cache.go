// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/reading"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/options"
)

// reads is what readers call.
type reads = reading.Cache

// Cache is a ConfigStoreCache of objects in etcd. Create it with New. Beyond the
// interface it is a configstore.BatchWriter, Subscriber, BatchSubscriber, ListSubscriber,
// Watcher, Drainer, Flusher and Deliverer.
//
// HasSynced is true once everything that etcd has was read, and the handlers have
// processed it. Revision counts the changes of this cache and has nothing to do with the
// revisions of etcd: Status has those.
type Cache struct {
	reads
	opts   Options
	client *clientv3.Client
	kv     clientv3.KV
	keys   *keys
	codec  *codec
	// published is what readers see and handlers are notified of.
	published *memory.Controller
	// started is set when Run begins.
	started atomic.Bool

	// feeding holds one token while somebody writes to published: Run, or, while it does
	// not run, a call that wants to be up to date. What follows is the holder's.
	feeding chan struct{}
	// known is what etcd has, as far as it was read.
	known map[string]version
	// cluster is the identity of the cluster that was read.
	cluster uint64

	mu sync.Mutex
	// listed is set once the initial state is published.
	listed bool
	// shown is the revision of etcd that is published.
	shown int64
	// changed is closed when shown or running change; nil if nobody waits.
	changed chan struct{}
	// running is set while Run reads.
	running bool
	feed    feedState
	errs    map[string]*Error
}

var (
	_ configstore.ConfigStoreCache = (*Cache)(nil)
	_ configstore.BatchWriter      = (*Cache)(nil)
	_ configstore.Subscriber       = (*Cache)(nil)
	_ configstore.BatchSubscriber  = (*Cache)(nil)
	_ configstore.ListSubscriber   = (*Cache)(nil)
	_ configstore.Watcher          = (*Cache)(nil)
	_ configstore.Drainer          = (*Cache)(nil)
	_ configstore.Flusher          = (*Cache)(nil)
	_ configstore.Deliverer        = (*Cache)(nil)
)

// New returns the cache of the objects that etcd has of the kinds of schemas. It sends
// nothing yet. The client stays the caller's, who closes it when the cache is not used any
// more; wrappers around its parts, such as those of clientv3/namespace, are not used. The
// error is that of unusable options.
func New(client *clientv3.Client, schemas configstore.Schemas, opts ...Options) (*Cache, error) {
	o, err := options.One("etcd.New", opts).withDefaults()
	if err == nil && client == nil {
		err = errors.New("a client is required")
	}
	if err != nil {
		return nil, fmt.Errorf("etcd.New: %w", err)
	}
	k, err := newKeys(o.Prefix, schemas)
	if err != nil {
		return nil, fmt.Errorf("etcd.New: %w", err)
	}
	c := &Cache{
		opts:   o,
		client: client,
		kv:     clientv3.NewKVFromKVClient(clientv3.RetryKVClient(client), client),
		keys:   k,
		codec:  newCodec(k, schemas, o),
		published: memory.NewController(memory.Make(schemas, memory.Options{
			Mirror: true, SkipValidation: true, HistoryLimit: o.HistoryLimit,
		}), memory.ControllerOptions{Logger: o.Logger}),
		feeding: make(chan struct{}, 1),
		known:   map[string]version{},
		errs:    map[string]*Error{},
	}
	c.reads = c.published
	c.published.RegisterHasSyncedHandler(c.isListed)
	return c, nil
}

// remote returns a client for the watch stream, which is not one of clientv3: that tries
// again without saying so, and staleness would not be seen.
func (c *Cache) remote() etcdserverpb.WatchClient {
	return etcdserverpb.NewWatchClient(c.client.ActiveConnection())
}

// Snapshot returns the present state of all kinds.
func (c *Cache) Snapshot() *memory.Snapshot { return c.published.Snapshot() }

func (c *Cache) isListed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listed
}

// Drain implements configstore.Drainer. Before Run it reads what is new in etcd; if that
// fails, Status has the error.
func (c *Cache) Drain() {
	if !c.started.Load() {
		ctx, cancel := c.timeout()
		defer cancel()
		_ = c.refresh(ctx)
	}
	c.published.Drain()
}

// Flush implements configstore.Flusher. Before Run it reads what is new in etcd. While Run
// runs it waits for what was read, which includes all writes of this cache that have
// returned.
func (c *Cache) Flush(ctx context.Context) error {
	if !c.started.Load() {
		if err := c.refresh(ctx); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	return c.published.Flush(ctx)
}

// timeout returns a context for one call of a method that takes none.
func (c *Cache) timeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), c.opts.Timeout) //nolint:forbidigo // The methods of ConfigStore take no context.
}

// Run reads from etcd and delivers events, until stop is closed. While etcd is away it
// goes on trying, and the state stays. When it returns, all that it started has ended. A
// second call panics.
func (c *Cache) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	var following sync.WaitGroup
	if !c.started.Swap(true) {
		following.Go(func() { c.follow(ctx) })
	}
	defer following.Wait()
	defer cancel()
	c.published.Run(stop)
}

// Errors returns the keys whose values are not in the cache at present, sorted by key. The
// slice is the caller's, the errors are shared.
func (c *Cache) Errors() []*Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := make([]*Error, 0, len(c.errs))
	for _, e := range c.errs {
		errs = append(errs, e)
	}
	slices.SortFunc(errs, func(a, b *Error) int { return cmp.Compare(a.Key, b.Key) })
	return errs
}
