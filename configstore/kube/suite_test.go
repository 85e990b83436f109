// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/storetest"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestSuite: the cache keeps the guarantees of package configstore, over a real API server. It
// reads before Run, because the suite writes before Run.
func TestSuite(t *testing.T) {
	// The suite uses namespaces without creating them.
	server := kubetest.Start(t, "--disable-admission-plugins=NamespaceLifecycle")
	factory := func(tb testing.TB, schemas configstore.Schemas) storetest.Subject {
		tb.Helper()
		server.ApplyCRDs(tb, crdsOf(schemas))
		l := newLive(tb, restConfig(server.Config()), schemas)
		l.clear(tb)
		c := newCache(tb, restConfig(server.Config()), schemas, kube.Options{HistoryLimit: 256})
		ctx, cancel := context.WithCancel(context.Background())
		var following sync.WaitGroup
		following.Go(func() { c.Follow(ctx) })
		tb.Cleanup(func() {
			cancel()
			following.Wait()
		})
		eventually(tb, "the empty state is read", c.Listed)
		r := &recorded{Cache: c, written: map[configstore.ConfigKey]string{}}
		return storetest.Subject{Store: r, Timeout: patience, APIServer: true, Fewer: tier.Divisor(), CatchUp: func() { r.catchUp(tb, l) }}
	}
	t.Run("Store", func(t *testing.T) { storetest.TestStore(t, factory) })
	t.Run("Cache", func(t *testing.T) { storetest.TestCache(t, factory) })
}

// recorded is a cache that records the writes that were not awaited yet.
type recorded struct {
	*kube.Cache
	mu      sync.Mutex
	written map[configstore.ConfigKey]string
}

func (r *recorded) Create(c configstore.Config) (string, error) { return r.write(c, r.Cache.Create) }

func (r *recorded) Update(c configstore.Config) (string, error) { return r.write(c, r.Cache.Update) }

func (r *recorded) UpdateStatus(c configstore.Config) (string, error) {
	return r.write(c, r.Cache.UpdateStatus)
}

func (r *recorded) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	c := configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Name: name, Namespace: namespace}}
	_, err := r.write(c, func(configstore.Config) (string, error) {
		return "", r.Cache.Delete(kind, name, namespace, resourceVersion)
	})
	return err
}

func (r *recorded) write(c configstore.Config, write func(configstore.Config) (string, error)) (string, error) {
	revision, err := write(c)
	if c.GroupVersionKind == (configstore.GroupVersionKind{}) {
		c.GroupVersionKind, _ = r.Schemas().KindOf(c.Spec)
	}
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.written[c.Key()] = revision
	}
	return revision, err
}

// catchUp awaits the recorded writes. If concurrent writes were recorded in another order than they
// happened, that times out; then it reads from the API server.
func (r *recorded) catchUp(tb testing.TB, l *live) {
	tb.Helper()
	r.mu.Lock()
	written := r.written
	r.written = map[configstore.ConfigKey]string{}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	for key, revision := range written {
		if r.Await(ctx, key, revision) != nil {
			r.compare(tb, l)
			return
		}
	}
}

func (r *recorded) compare(tb testing.TB, l *live) {
	tb.Helper()
	eventually(tb, "the cache shows what the API server has", func() bool {
		state, err := l.state(context.Background())
		if err != nil {
			tb.Fatal(err)
		}
		return maps.Equal(state, shown(r))
	})
}
