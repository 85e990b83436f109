// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/pilotkit/pilotkit/configstore/kube/internal/boundedlist"
)

// firstBackoff is the delay before the second attempt to reach the API server.
const firstBackoff = 200 * time.Millisecond

// follow synchronizes the cache with the API server until ctx ends, and joins the goroutines that
// it started. One goroutine, the reflector of the CRDs, decides which kinds are watched; each of
// them has its own reflector.
func (c *Cache) follow(ctx context.Context) {
	ctx = quiet(ctx)
	defer func() {
		for _, k := range c.kinds {
			k.end()
		}
	}()
	from := &source{
		client: c.client,
		path:   func() []string { return []string{"apis", crdGroup, "v1", "customresourcedefinitions"} },
		list:   func() runtime.Object { return &crdList{} },
		report: func(err error) { c.reportCRDs(ctx, err) },
	}
	c.reflect(ctx, from, &crd{}, &crds{cache: c, ctx: ctx, known: map[string]*crd{}})
}

// quiet keeps client-go from logging to standard error, because its errors are reported in other
// ways and the rest is noise.
func quiet(ctx context.Context) context.Context {
	return klog.NewContext(ctx, logr.FromSlogHandler(slog.DiscardHandler))
}

// reflect lists and watches into a store until ctx ends.
func (c *Cache) reflect(ctx context.Context, from *source, expected any, into cache.ReflectorStore) {
	logger := klog.FromContext(ctx)
	defer from.end()
	bounded := boundedlist.New(from, into)
	cache.NewReflectorWithOptions(bounded, expected, bounded, cache.ReflectorOptions{
		Name:   "pilotkit",
		Logger: &logger,
		Backoff: &wait.Backoff{
			Duration: min(firstBackoff, c.opts.MaxBackoff),
			Factor:   2,
			Jitter:   0.5,
			Steps:    math.MaxInt32, // Cap ends the growth.
			Cap:      c.opts.MaxBackoff,
		},
	}).RunWithContext(ctx)
}

// begin watches the kind at a version of its CRD, and ends a watch of another version.
func (k *kind) begin(ctx context.Context, crdUID string, version int) {
	if f := k.following; f != nil && f.crdUID == crdUID && f.version == version {
		return
	}
	k.end()
	k.cache.mu.Lock()
	k.restart = make(chan struct{})
	for _, s := range k.scopes {
		s.served = version
	}
	k.cache.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	f := &following{crdUID: crdUID, version: version, cancel: cancel}
	k.following = f
	for _, s := range k.scopes {
		f.done.Go(func() {
			for ctx.Err() == nil {
				s.follow(ctx)
			}
		})
	}
}

// end stops the kind's reflectors, if any, and returns when they publish nothing more.
func (k *kind) end() {
	if k.following == nil {
		return
	}
	k.following.cancel()
	k.following.done.Wait()
	k.following = nil
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	k.restart = nil
}

// vanish marks the kind as absent from the server and deletes its objects.
func (k *kind) vanish() {
	k.end()
	for _, s := range k.scopes {
		(&publisher{scope: s}).clear()
	}
	c := k.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range k.scopes {
		s.served, s.resolved, s.err = absent, true, failure{}
	}
}
