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

// DefaultMaxBackoff is the longest time between two attempts to reach an API server,
// unless a program says another one.
const DefaultMaxBackoff = 5 * time.Second

// firstBackoff is the time until the second attempt.
const firstBackoff = 200 * time.Millisecond

// errClosed is what an attempt to watch ends with whose connection broke.
var errClosed = errors.New("the connection was closed before an answer came")

// Resource is what a client of one kind of objects can do.
type Resource[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// ListWatch returns what a reflector lists and watches with. narrow says of which
// objects; do makes each request.
//
// Every list is consistent. A reflector would take its first one from whatever the
// server has in its cache; of several servers one may lag behind, and show what is
// older than what another one has shown before.
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

// broken returns the error of an attempt to watch. A connection that breaks is none to
// client-go, but a watch that ends at once: a server that is away would seem to have
// answered.
func broken(w watch.Interface, err error) error {
	if err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
		return errClosed
	}
	return err
}

// ending returns the error that a reflector gets, so that it ends when it is to, and
// waits before it tries again. As it begins, it has rules of its own for two kinds of
// errors: after a refusal it waits without a look at its context; what is too old it
// asks for again at once, also if it has asked for no revision. After any other error
// it lists, which fails as well, and waits as it should.
func ending(err error, o *metav1.ListOptions) error {
	begins := o.SendInitialEvents != nil
	refused := utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
	old := o.ResourceVersion == "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge))
	if begins && (refused || old) {
		return errors.New(err.Error()) // without the errors that it wraps
	}
	return err
}

// Reflect lists and watches objects of the type of example into a store until ctx
// ends. Between two attempts to reach the server it waits, at first 200 ms, then
// twice as long each time up to maxBackoff, and each time up to half of that longer,
// by chance. Nothing is logged: what client-go would write to standard error is either
// in the requests' errors, or noise.
func Reflect(
	ctx context.Context, name string, from cache.ListerWatcher, example runtime.Object, into cache.ReflectorStore, maxBackoff time.Duration,
) {
	logger := logr.FromSlogHandler(slog.DiscardHandler)
	cache.NewReflectorWithOptions(from, example, into, cache.ReflectorOptions{
		Name: name, Logger: &logger, Backoff: backoff(maxBackoff),
	}).RunWithContext(klog.NewContext(ctx, logger))
}

func backoff(longest time.Duration) *wait.Backoff {
	return &wait.Backoff{
		Duration: min(firstBackoff, longest), Factor: 2, Jitter: 0.5, Cap: longest,
		Steps: math.MaxInt32, // Cap ends the growth.
	}
}
