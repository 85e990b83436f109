// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// DefaultMaxBackoff is the default of the maximum backoff of requests to an API server.
const DefaultMaxBackoff = 5 * time.Second

// firstBackoff is the backoff before the second attempt.
const firstBackoff = 200 * time.Millisecond

// errClosed is the error of an attempt to watch whose connection broke.
var errClosed = errors.New("the connection was closed before an answer came")

// Resource is a typed client of one kind of objects.
type Resource[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// ListWatch returns the ListerWatcher of a reflector. narrow restricts the objects; do makes each
// request.
//
// Every list is consistent. A reflector would read its first list from the cache of the server. One
// of several servers may lag behind, and return an older state than another one has returned
// before.
func ListWatch[L runtime.Object](
	client any, from Resource[L], narrow func(*metav1.ListOptions), do func(ctx context.Context, request func() error) error,
) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			narrow(&o)
			if o.ResourceVersion == "0" {
				o.ResourceVersion = ""
			}
			var list runtime.Object
			err := do(ctx, func() (err error) {
				list, err = from.List(ctx, o)
				return err
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (w watch.Interface, err error) {
			narrow(&o)
			err = do(ctx, func() error {
				w, err = from.Watch(ctx, o)
				return broken(w, err)
			})
			if err != nil {
				return nil, ending(err, &o)
			}
			return w, nil
		},
	}, client)
}

// broken returns the error of an attempt to watch. For a broken connection client-go returns no
// error, but a watch that ends at once, as if the server had responded.
func broken(w watch.Interface, err error) error {
	if err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
		return errClosed
	}
	return err
}

// ending returns the error for a reflector, so that the reflector ends with its context, and waits
// before it retries. At its start, a reflector treats two kinds of errors specially: after a
// refused connection or request it waits without checking its context; after an error for a too old
// revision it retries at once, even if it has asked for no revision. After any other error it
// lists, which fails as well, and waits as it should.
func ending(err error, o *metav1.ListOptions) error {
	begins := o.SendInitialEvents != nil
	refused := utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
	old := o.ResourceVersion == "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge))
	if begins && (refused || old) {
		return errors.New(err.Error()) // without the wrapped errors
	}
	return err
}

// Reflect lists and watches objects of the type of example into a store until ctx ends. It retries
// with exponential backoff, from 200 ms up to maxBackoff, plus a jitter of up to half of the delay.
// It logs nothing, because client-go's messages on standard error are either in the requests'
// errors, or noise.
func Reflect(
	ctx context.Context, name string, from cache.ListerWatcher, example runtime.Object, into cache.ReflectorStore, maxBackoff time.Duration,
) {
	logger := logr.FromSlogHandler(slog.DiscardHandler)
	list := newBounded(from, into)
	cache.NewReflectorWithOptions(list, example, list, cache.ReflectorOptions{
		Name: name, Logger: &logger, Backoff: backoff(maxBackoff),
	}).RunWithContext(klog.NewContext(ctx, logger))
}

func backoff(longest time.Duration) *wait.Backoff {
	return &wait.Backoff{
		Duration: min(firstBackoff, longest), Factor: 2, Jitter: 0.5, Cap: longest,
		Steps: math.MaxInt32, // Cap bounds the growth
	}
}
