// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// TestReadSide proves that a store that follows a server keeps what stores promise to
// their readers. By delta, as by SotW thousands of writes are as many responses with all
// objects.
func TestReadSide(t *testing.T) {
	tier.OnlyFull(t, "the promises of stores, by a store that a server fills")
	storetest.TestStore(t, readSide)
	storetest.TestCache(t, readSide)
}

func readSide(tb testing.TB, schemas configstore.Schemas) storetest.Subject {
	tb.Helper()
	written := memory.Make(schemas)
	served := memory.NewController(written)
	server := NewServer(served, ServerOptions{ADS: ads.Options{Debounce: xdsupdate.Debounce{After: -1}}})
	listener := memnet.Listen()
	serveOn(tb, listener, server.Register, served.Run, server.Run)
	store := &locked{Store: memory.Make(schemas)}
	source := NewSource(dialed(tb, listener), store, SourceOptions{Delta: true, Domain: "cluster.local"})
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { source.Run(stop) })
	tb.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	if err := configstore.WaitForSync(tb.Context(), source); err != nil {
		tb.Fatal(err)
	}
	return storetest.Subject{
		Store: readOnly{memory.NewController(store.Store)}, Writer: &follower{ConfigStore: written, tb: tb, follows: store},
		Timeout: time.Minute,
	}
}

// follower is the store of the server. Its writes return when the following store shows them,
// because later writes would be merged into one response. It takes no batches, because the kinds of
// a batch come in several responses.
type follower struct {
	configstore.ConfigStore
	tb      testing.TB
	follows *locked
	mu      sync.Mutex // one write at a time
}

// locked is a store whose batches are written under a lock: reads may show them before
// they are in the queues of the store's caches.
type locked struct {
	*memory.Store
	mu sync.Mutex
}

func (l *locked) Apply(mutations ...configstore.Mutation) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Store.Apply(mutations...)
}

// settled returns when a batch that reads show has been written to its end.
func (l *locked) settled() {
	l.mu.Lock()
	defer l.mu.Unlock()
}

// write calls write, and returns the revision of the object in the following store.
func (f *follower) write(c configstore.Config, write func(configstore.Config) (string, error)) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := write(c); err != nil {
		return "", err
	}
	defer f.follows.settled()
	ctx, cancel := context.WithTimeout(f.tb.Context(), time.Minute)
	defer cancel()
	for {
		revision := f.follows.Revision()
		want, got := f.Get(c.GroupVersionKind, c.Name, c.Namespace), f.follows.Get(c.GroupVersionKind, c.Name, c.Namespace)
		switch {
		case want == nil && got == nil:
			return "", nil
		case want != nil && got != nil && travelled(want).Equal(travelled(got)):
			return got.ResourceVersion, nil
		}
		for _, err := range f.follows.Watch(ctx, revision) {
			if err != nil {
				return "", fmt.Errorf("the store does not have what was written: %w", err)
			}
			break
		}
		if err := ctx.Err(); err != nil {
			return "", fmt.Errorf("the store does not have what was written: %w", err)
		}
	}
}

func (f *follower) Create(c configstore.Config) (string, error) {
	return f.write(c, f.ConfigStore.Create)
}

func (f *follower) Update(c configstore.Config) (string, error) {
	return f.write(c, f.ConfigStore.Update)
}

func (f *follower) Delete(kind configstore.GroupVersionKind, name, namespace string, revision *string) error {
	c := configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Name: name, Namespace: namespace}}
	_, err := f.write(c, func(configstore.Config) (string, error) {
		return "", f.ConfigStore.Delete(kind, name, namespace, revision)
	})
	return err
}

// readOnly is a cache that takes no writes.
type readOnly struct{ *memory.Controller }

func (readOnly) Create(configstore.Config) (string, error) { return "", configstore.ErrReadOnly }

func (readOnly) Update(configstore.Config) (string, error) { return "", configstore.ErrReadOnly }

func (readOnly) UpdateStatus(configstore.Config) (string, error) { return "", configstore.ErrReadOnly }

func (readOnly) Delete(configstore.GroupVersionKind, string, string, *string) error {
	return configstore.ErrReadOnly
}
