// SPDX-License-Identifier: Apache-2.0

// Package follow watches one kind of objects of an API server, and delivers their changes.
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

	"github.com/pilotkit/pilotkit/configstore/kube/internal/boundedlist"
)

const (
	// firstBackoff is the delay before the second attempt to reach the API server.
	firstBackoff = 200 * time.Millisecond
	// answerTime is the time after which Err reports a pending request.
	answerTime = 5 * time.Second
)

var (
	errNoAnswer = fmt.Errorf("no answer from the API server for %v", answerTime)
	errClosed   = errors.New("the connection to the API server was closed before it answered")
)

// Change is the present state of an object, or its deletion.
type Change struct {
	Object metav1.Object
	Gone   bool
}

// Options configure a Source.
type Options struct {
	// Kind is the resource for messages, for instance "services".
	Kind string
	// Labels is the label selector of the objects; empty selects all.
	Labels string
	// Apply receives a batch of changes. After a list the batch leads from the previous objects to
	// the listed ones. Apply is called with an empty batch when HasSynced has become true. Calls
	// are sequential.
	Apply func([]Change)
	// Trim drops the unused fields of an object. If nil, objects are not trimmed.
	Trim func(runtime.Object)
	// Optional makes a kind that the server rejects count as synced, without objects.
	Optional bool
	// MaxBackoff is the maximum backoff between two attempts, before jitter.
	MaxBackoff time.Duration
	// Logger gets an error when it first occurs.
	Logger *slog.Logger
}

// Source is one kind of objects, which a reflector lists and watches. It stores only the names of
// the objects. Create it with New.
type Source struct {
	opts    Options
	example runtime.Object
	from    cache.ListerWatcher
	// known are the names of the delivered objects. Only the reflector uses it.
	known    map[name]struct{}
	answered atomic.Bool

	mu  sync.Mutex
	err error
}

type name struct{ namespace, name string }

// Resource is a typed client of one kind of objects.
type Resource[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// New returns a source of the objects of a client's resource. The objects have the type of example.
func New[L runtime.Object](client any, from Resource[L], example runtime.Object, opts Options) *Source {
	s := &Source{opts: opts, example: example, known: map[name]struct{}{}}
	s.from = listWatch(client, from, s)
	return s
}

// listWatch returns the reflector's ListerWatcher.
//
// Every list is consistent, while a reflector would accept its first list from the server's watch
// cache. An error at the beginning of a watch makes the reflector list, and back off if the list
// fails as well. For some watch errors a reflector would otherwise wait without looking at ctx.
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
				// client-go returns a refused or broken connection as a watch that ends at once.
				if w, err = from.Watch(ctx, o); err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
					return errClosed
				}
				return err
			})
			if err != nil && o.SendInitialEvents != nil {
				return nil, errors.New(err.Error()) // drops the wrapped errors
			}
			return w, err
		},
	}, client)
}

// Kind returns Options.Kind.
func (s *Source) Kind() string { return s.opts.Kind }

// HasSynced reports whether a complete list was delivered, or the kind counts as empty.
func (s *Source) HasSynced() bool { return s.answered.Load() }

// Err returns the reason why the kind cannot be read at present, or nil.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Run lists and watches until ctx ends. The log of client-go is discarded, because Err returns its
// errors and the rest is noise.
func (s *Source) Run(ctx context.Context) {
	logger := logr.FromSlogHandler(slog.DiscardHandler)
	bounded := boundedlist.New(s.from, (*store)(s))
	cache.NewReflectorWithOptions(bounded, s.example, bounded, cache.ReflectorOptions{
		Name: "pilotkit." + s.opts.Kind, Logger: &logger,
		Backoff: &wait.Backoff{
			Duration: min(firstBackoff, s.opts.MaxBackoff), Factor: 2, Jitter: 0.5, Steps: math.MaxInt32, Cap: s.opts.MaxBackoff,
		},
	}).RunWithContext(klog.NewContext(ctx, logger))
}

// do makes a request, and records its outcome, and also when it takes longer than answerTime.
func (s *Source) do(ctx context.Context, request func() error) error {
	late := time.AfterFunc(answerTime, func() { s.note(ctx, errNoAnswer) })
	err := request()
	late.Stop()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // Otherwise the reflector lists next.
		s.note(ctx, err)
	}
	if s.opts.Optional && ctx.Err() == nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		s.finish()
	}
	return err
}

// finish marks the kind as synced.
func (s *Source) finish() {
	if !s.answered.Swap(true) {
		s.opts.Apply(nil)
	}
}

// note records an error, or nil. A lasting error is logged once.
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
