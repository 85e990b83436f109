// SPDX-License-Identifier: Apache-2.0

// Package follow keeps up with one kind of objects of an API server, and hands on what changes.
package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/atomic"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// firstBackoff is the time until the second attempt to reach the API server.
	firstBackoff = 200 * time.Millisecond
	// answerTime is how long a request may be without an answer until Err says so.
	answerTime = 5 * time.Second
)

var (
	errNoAnswer = fmt.Errorf("no answer from the API server for %v", answerTime)
	errClosed   = errors.New("the connection to the API server was closed before it answered")
)

// Change is the present state of an object, or its absence.
type Change struct {
	Object metav1.Object
	Gone   bool
}

// Options are what a Source does.
type Options struct {
	// Kind is the resource, as in messages: "services".
	Kind string
	// Labels is the selector of the objects; empty: all.
	Labels string
	// Apply takes changes, all together; of a list those that make of what there was what
	// there is. It is called without any when HasSynced has become true. Calls follow each other.
	Apply func([]Change)
	// Trim drops what is not read of an object; nil: nothing.
	Trim func(runtime.Object)
	// Optional: what the server does not give counts as listed, without objects.
	Optional bool
	// MaxBackoff is the longest time between two attempts.
	MaxBackoff time.Duration
	// Logger gets an error when it appears.
	Logger *slog.Logger
}

// Source is one kind of objects, which a reflector lists and watches. It keeps no objects but
// their names. Create it with New.
type Source struct {
	opts    Options
	example runtime.Object
	from    cache.ListerWatcher
	// known are the names of the objects that were handed on. Only the reflector uses it.
	known    map[name]struct{}
	answered atomic.Bool

	mu  sync.Mutex
	err error
}

type name struct{ namespace, name string }

// Resource is what a client of one kind of objects can do.
type Resource[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// New returns the source of the objects that a resource of a client has, which have the type
// of example.
func New[L runtime.Object](client any, from Resource[L], example runtime.Object, opts Options) *Source {
	s := &Source{opts: opts, example: example, known: map[name]struct{}{}}
	s.from = listWatch(client, from, s)
	return s
}

// listWatch returns what a reflector lists and watches with.
//
// Every list is consistent: a reflector would take its first one from whatever the server
// has in its cache. An error at the beginning makes a reflector list, and wait after that
// if it fails as well: of some errors of a watch it would wait without a look at ctx.
func listWatch[L runtime.Object](client any, from Resource[L], s *Source) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (list runtime.Object, err error) {
			if o.LabelSelector = s.opts.Labels; o.ResourceVersion == "0" {
				o.ResourceVersion = ""
			}
			err = s.do(ctx, func() error {
				list, err = from.List(ctx, o)
				return err
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (w watch.Interface, err error) {
			o.LabelSelector = s.opts.Labels
			err = s.do(ctx, func() error {
				// A connection that breaks is no error to client-go, but a watch that ends at once.
				if w, err = from.Watch(ctx, o); err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
					return errClosed
				}
				return err
			})
			if err != nil && o.SendInitialEvents != nil {
				return nil, errors.New(err.Error()) // without the errors that it wraps
			}
			return w, err
		},
	}, client)
}

// Kind returns Options.Kind.
func (s *Source) Kind() string { return s.opts.Kind }

// HasSynced reports whether a complete list was handed on, or the kind counts as empty.
func (s *Source) HasSynced() bool { return s.answered.Load() }

// Err returns why the kind cannot be read at present; nil: it can.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Run lists and watches until ctx ends. client-go logs nothing: what it would write is in Err, or
// noise.
func (s *Source) Run(ctx context.Context) {
	logger := logr.FromSlogHandler(slog.DiscardHandler)
	cache.NewReflectorWithOptions(s.from, s.example, (*store)(s), cache.ReflectorOptions{
		Name: "pilotkit." + s.opts.Kind, Logger: &logger,
		Backoff: &wait.Backoff{
			Duration: min(firstBackoff, s.opts.MaxBackoff), Factor: 2, Jitter: 0.5, Steps: math.MaxInt32, Cap: s.opts.MaxBackoff,
		},
	}).RunWithContext(klog.NewContext(ctx, logger))
}

// do makes a request, and remembers how it ended, or that it takes long.
func (s *Source) do(ctx context.Context, request func() error) error {
	late := time.AfterFunc(answerTime, func() { s.note(ctx, errNoAnswer) })
	err := request()
	late.Stop()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // The beginning of a list.
		s.note(ctx, err)
	}
	if s.opts.Optional && ctx.Err() == nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		s.finish()
	}
	return err
}

// finish makes the kind one that has been read.
func (s *Source) finish() {
	if !s.answered.Swap(true) {
		s.opts.Apply(nil)
	}
}

// note remembers an error, or nil. What stays wrong is logged once.
func (s *Source) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	appeared := s.err == nil && err != nil
	s.err = err
	s.mu.Unlock()
	if appeared {
		s.opts.Logger.Warn("a kind of objects cannot be read", slog.String("kind", s.opts.Kind), slog.Any("error", err))
	}
}
