// SPDX-License-Identifier: Apache-2.0

package ingress

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
	// answerTime is how long a request may be without an answer until Errors says so.
	answerTime = 5 * time.Second
)

var (
	errNoAnswer = fmt.Errorf("no answer from the API server for %v", answerTime)
	errClosed   = errors.New("the connection to the API server was closed before it answered")
)

// source is one kind of objects, which a reflector lists and watches. It keeps no objects
// but their names: what arrives is applied at once.
type source struct {
	cache *Cache
	kind  string
	// example has the type of the objects.
	example runtime.Object
	from    cache.ListerWatcher
	// change returns the changes of an object's present state, or of its absence.
	change func(object metav1.Object, gone bool) Change
	// trim drops what is not read.
	trim func(object any)
	// optional: what the server does not give counts as listed, without objects.
	optional bool
	// known are the objects that the converter has. Only the reflector uses it.
	known map[Key]metav1.Object

	// answered: a complete list was applied, or the kind counts as empty. The cache's mu
	// protects it.
	answered bool

	mu  sync.Mutex
	err error
}

// resource is what a client of one kind of objects can do.
type resource[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// listWatch returns what a reflector lists and watches with; labels narrow it.
//
// Every list is consistent: a reflector would take its first one from whatever the server
// has in its cache. An error at the beginning makes a reflector list, and wait after that
// if it fails as well: of some errors of a watch it would wait without a look at ctx.
func listWatch[L runtime.Object](client any, from resource[L], labels string, s *source) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (list runtime.Object, err error) {
			if o.LabelSelector = labels; o.ResourceVersion == "0" {
				o.ResourceVersion = ""
			}
			err = s.do(ctx, func() error {
				list, err = from.List(ctx, o)
				return err
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (w watch.Interface, err error) {
			o.LabelSelector = labels
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

// do makes a request, and remembers how it ended, or that it takes long.
func (s *source) do(ctx context.Context, request func() error) error {
	late := time.AfterFunc(answerTime, func() { s.note(ctx, errNoAnswer) })
	err := request()
	late.Stop()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // The beginning of a list.
		s.note(ctx, err)
	}
	if s.optional && ctx.Err() == nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		s.finish()
	}
	return err
}

// note remembers an error, or nil. What stays wrong is logged once.
func (s *source) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	appeared := s.err == nil && err != nil
	s.err = err
	s.mu.Unlock()
	if appeared {
		s.cache.opts.Logger.Warn("a kind of objects cannot be read", slog.String("kind", s.kind), slog.Any("error", err))
	}
}

// finish makes the kind one that has been read, once changes are applied.
func (s *source) finish(changes ...Change) {
	s.cache.apply(append(changes, Change{func(*Converter) { s.answered = true }})...)
}

// Add implements cache.ReflectorStore.
func (s *source) Add(object any) error {
	if o, ok := object.(metav1.Object); ok {
		s.cache.apply(s.set(o))
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *source) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *source) Delete(object any) error {
	if o, ok := object.(metav1.Object); ok {
		delete(s.known, keyOf(o))
		s.cache.apply(s.change(o, true))
	}
	return nil
}

// Replace implements cache.ReflectorStore. The list is applied as one.
func (s *source) Replace(objects []any, _ string) error {
	gone := s.known
	s.known = make(map[Key]metav1.Object, len(objects))
	changes := make([]Change, 0, len(objects))
	for i, object := range objects {
		if o, ok := object.(metav1.Object); ok {
			delete(gone, keyOf(o))
			changes = append(changes, s.set(o))
		}
		objects[i] = nil
	}
	for _, o := range gone {
		changes = append(changes, s.change(o, true))
	}
	s.finish(changes...)
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *source) Resync() error { return nil }

// Transformer implements cache.TransformingStore.
func (s *source) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		s.trim(object)
		return object, nil
	}
}

func (s *source) set(o metav1.Object) Change {
	s.trim(o)
	s.known[keyOf(o)] = &metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}
	return s.change(o, false)
}

func keyOf(o metav1.Object) Key { return Key{o.GetNamespace(), o.GetName()} }

// run lists and watches until ctx ends. client-go logs nothing: what it would write is in
// Errors, or noise.
func (s *source) run(ctx context.Context) {
	logger := logr.FromSlogHandler(slog.DiscardHandler)
	cache.NewReflectorWithOptions(s.from, s.example, s, cache.ReflectorOptions{
		Name: "ingress." + s.kind, Logger: &logger,
		Backoff: &wait.Backoff{
			Duration: firstBackoff, Factor: 2, Jitter: 0.5, Steps: math.MaxInt32, Cap: s.cache.opts.MaxBackoff,
		},
	}).RunWithContext(klog.NewContext(ctx, logger))
}
