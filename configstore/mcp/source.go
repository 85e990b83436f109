// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/backoff"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Source keeps the objects of a server in a store. Create it with NewSource; the
// package comment states its rules.
type Source struct {
	conn    grpc.ClientConnInterface
	store   configstore.ConfigStore
	schemas configstore.Schemas
	opts    SourceOptions

	ran atomic.Bool
	// loaded is set when every kind was answered.
	loaded atomic.Bool

	// Only Run uses these.

	kinds  []*sourceKind
	byType map[string]*sourceKind
	// delta: the next stream is one of the delta protocol.
	delta bool
	// foreign counts responses of other types.
	foreign int
	retry   backoff.Backoff
	// refused: there is something that the store has refused, which is written again at
	// retryAt.
	refused bool
	retryAt time.Time
	asking  asking

	mu     sync.Mutex
	status Status
	// errs and ignored are what Report has.
	errs    map[*Error]struct{}
	ignored int
}

// NewSource returns a source that keeps the objects of a server in a store. It starts nothing before
// Run. The caller keeps and closes the connection; only its keep-alive parameters detect a server
// that has disappeared silently. Several sources, and other writers, may write to one store. If the
// store is a configstore.SourceRegistrar, such as a memory.Store, its caches sync only after this
// source, so that it has to be run. NewSource panics for a kind that the store does not know, and for
// a kind that is requested twice.
func NewSource(conn grpc.ClientConnInterface, store configstore.ConfigStore, opts ...SourceOptions) *Source {
	schemas := store.Schemas()
	o := options.One("mcp.NewSource", opts).withDefaults(schemas)
	s := &Source{
		conn: conn, store: store, schemas: schemas, opts: o, delta: o.Delta,
		byType: map[string]*sourceKind{}, errs: map[*Error]struct{}{}, retry: backoff.Backoff{Longest: o.MaxBackoff},
	}
	known := map[configstore.GroupVersionKind]struct{}{}
	for _, kind := range o.Kinds {
		schema, ok := schemas.Find(kind)
		if !ok {
			panic("mcp: NewSource of a kind that the store does not have: " + kind.String())
		}
		if _, twice := known[schema.GroupVersionKind]; twice {
			panic("mcp: NewSource with a kind twice: " + kind.String())
		}
		known[schema.GroupVersionKind] = struct{}{}
		k := newSourceKind(schema, typeURL(kind))
		s.kinds = append(s.kinds, k)
		s.byType[k.typeURL] = k
	}
	s.publish()
	s.sync()
	if caches, ok := configstore.As[configstore.SourceRegistrar](store); ok {
		caches.RegisterSource(s)
	}
	return s
}

// HasSynced reports whether every kind has been answered at least once and the store holds the
// valid objects of the responses. Without kinds it is true.
func (s *Source) HasSynced() bool { return s.loaded.Load() }

// sync makes HasSynced true if every kind has been answered.
func (s *Source) sync() {
	for _, k := range s.kinds {
		if !k.synced {
			return
		}
	}
	s.loaded.Store(true)
}

// Run follows the server until stop is closed, and returns when everything that it
// started has ended. A second call panics.
func (s *Source) Run(stop <-chan struct{}) {
	if s.ran.Swap(true) {
		panic("mcp: Run of a Source was called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Run has a stop channel
	var stopping sync.WaitGroup
	stopping.Go(func() {
		<-stop
		cancel()
	})
	s.stale(nil)
	for ctx.Err() == nil {
		err := s.session(ctx)
		s.disconnect()
		s.stale(nil)
		if ctx.Err() != nil {
			break
		}
		if s.opts.Delta && status.Code(err) == codes.Unimplemented {
			s.delta = !s.delta
			if !s.delta {
				// The peer is there and works: this is no failure.
				s.opts.Logger.Info("server does not speak delta", slog.Any("error", err))
				continue
			}
		}
		s.stale(err)
		backoff.Sleep(ctx, s.retry.Next())
	}
	stopping.Wait()
}

// stale records that the store may differ from the server.
func (s *Source) stale(err error) {
	s.mu.Lock()
	first := err != nil && s.status.Err == nil
	if s.status.StaleSince.IsZero() && len(s.kinds) > 0 {
		s.status.StaleSince = time.Now()
	}
	if err != nil {
		s.status.Err = err
		s.status.Failures++
	}
	s.mu.Unlock()
	if first {
		s.opts.Logger.Warn("configs are stale", slog.Any("error", err))
	}
}

// connected notes that there is a stream.
func (s *Source) connected(delta bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Connected, s.status.Delta = true, delta
}

// disconnect drops the state of the stream that has ended. The objects stay.
func (s *Source) disconnect() {
	for _, k := range s.kinds {
		k.disconnect()
	}
	s.mu.Lock()
	s.status.Connected, s.status.Delta = false, false
	s.mu.Unlock()
	s.publish()
}

// streamError says that a stream has ended.
func streamError(err error) error { return fmt.Errorf("stream of configs: %w", err) }
