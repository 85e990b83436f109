// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/reading"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/options"
)

// reads contains the read methods of a Cache.
type reads = reading.Cache

// Cache is a ConfigStoreCache of objects in etcd. Create it with New. It also implements
// configstore.BatchWriter, Subscriber, Watcher, Drainer and Flusher.
//
// HasSynced returns true once all objects of etcd were read and the handlers have processed them.
// Revision counts the changes of this cache and is unrelated to the revisions of etcd, which Status
// returns.
type Cache struct {
	reads
	opts   Options
	client *clientv3.Client
	kv     clientv3.KV
	keys   *keys
	codec  *codec
	// published is the state that readers see and that handlers follow.
	published *memory.Controller
	// started is set when Run begins.
	started atomic.Bool

	// feeding contains one token while somebody writes to published: Run, or, while it does not
	// run, a call that needs the latest state. The holder of the token owns known, cluster and silent.
	feeding chan struct{}
	// known contains the keys that were read from etcd.
	known map[string]version
	// cluster is the ID of the etcd cluster that was read.
	cluster uint64
	// silent is the number of watches in a row that the server was silent on, at most maxSilent.
	silent int

	mu sync.Mutex
	// listed is set once the initial state is published.
	listed bool
	// shown is the etcd revision of the published state.
	shown int64
	// changed is closed when shown or running change. It is nil unless somebody waits.
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
	_ configstore.Watcher          = (*Cache)(nil)
	_ configstore.Drainer          = (*Cache)(nil)
	_ configstore.Flusher          = (*Cache)(nil)
)

// New returns a cache of the objects in etcd of the kinds of schemas. It sends no request. The
// caller owns the client, and closes it when the cache is not used any more. New does not use
// wrappers around the client's parts, such as clientv3/namespace has. It returns an error if the
// options are invalid.
func New(client *clientv3.Client, schemas configstore.Schemas, opts ...Options) (*Cache, error) {
	o, err := options.One("etcd.New", opts).withDefaults()
	if err == nil && client == nil {
		err = errors.New("a client is required")
	}
	var k *keys
	if err == nil {
		k, err = newKeys(o.Prefix, schemas)
	}
	if err != nil {
		return nil, fmt.Errorf("etcd.New: %w", err)
	}
	c := &Cache{
		opts:   o,
		client: client,
		kv:     clientv3.NewKVFromKVClient(clientv3.RetryKVClient(client), client),
		keys:   k,
		codec:  &codec{keys: k, schemas: schemas, domain: o.Domain, skipRules: o.SkipValidation},
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

// Snapshot returns the current state of all kinds.
func (c *Cache) Snapshot() *memory.Snapshot { return c.published.Snapshot() }

func (c *Cache) isListed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listed
}

// Drain implements configstore.Drainer. Before Run it reads the latest state from etcd; if that
// fails, Status returns the error.
func (c *Cache) Drain() {
	if !c.started.Load() {
		ctx, cancel := c.timeout()
		defer cancel()
		_ = c.refresh(ctx)
	}
	c.published.Drain()
}

// Flush implements configstore.Flusher. Before Run it reads the latest state from etcd. While Run
// runs it covers everything that was read, which includes all writes of this cache that have
// returned.
func (c *Cache) Flush(ctx context.Context) error {
	if !c.started.Load() {
		if err := c.refresh(ctx); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	return c.published.Flush(ctx)
}

// timeout returns a context for a call of a method without one.
func (c *Cache) timeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), c.opts.Timeout) //nolint:forbidigo // The methods of ConfigStore take no context.
}

// Run reads from etcd and delivers events until stop is closed. While etcd is unavailable, Run
// retries and the cache keeps its state. All goroutines that Run started have ended when it
// returns. A second call panics.
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

// Errors returns the keys whose values are not in the cache at present, sorted by key. The caller
// owns the slice; the errors are shared.
func (c *Cache) Errors() []*Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.errs), func(a, b *Error) int { return cmp.Compare(a.Key, b.Key) })
}
