// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// source lists and watches one resource. It reports the result of each attempt, so that the cache
// can report its state; the reflector retries.
type source struct {
	client *rest.RESTClient
	// path returns the path of the resource.
	path func() []string
	// list returns an empty list of the resource.
	list func() runtime.Object
	// report is called with nil when the server has answered, else with the error.
	report func(error)

	// mu is held during a call: a reflector that ends does not wait for its list in progress.
	mu    sync.Mutex
	ended bool
	// streams are the watches that began with a list.
	streams sync.WaitGroup
}

// end waits for the calls in progress and prevents new ones. The caller has cancelled ctx before.
func (s *source) end() {
	s.streams.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

var _ cache.ListerWatcherWithContext = (*source)(nil)

// ListWithContext implements cache.ListerWatcherWithContext. Every list is consistent. A reflector
// would accept its first list from the server's watch cache. A lagging replica could then return
// objects that are older than the state that an earlier reflector has read from another replica.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, context.Canceled
	}
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
	list := s.list()
	attempt := s.begin(ctx)
	err := s.get(&options).Do(ctx).Into(list)
	attempt.end(err)
	return list, err
}

// WatchWithContext implements cache.ListerWatcherWithContext. It changes three errors that
// client-go handles specially:
//
//   - A rest.Request returns a refused or broken connection as a watch that ends at once, not as an
//     error. The server would seem to have responded.
//   - A reflector without a state waits after a refused connection without looking at ctx, so that
//     Run would not end before the backoff does. A plain error makes the reflector list instead;
//     the list fails as well, and its backoff ends with ctx.
//   - After an expired revision such a reflector repeats the watch at once, even if it requested no
//     revision. A plain error makes it list here, too.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	attempt, streams := s.begin(ctx), options.SendInitialEvents != nil
	w, err := s.get(&options).Watch(ctx)
	if err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
		err = errClosed
	}
	if err == nil && streams {
		list := newStreamed(w) // The response has only begun.
		s.streams.Go(func() { list.forward(attempt) })
		return list, nil
	}
	attempt.end(err)
	if err == nil {
		return w, nil
	}
	refused := utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
	if streams && (refused || options.ResourceVersion == "" && isUnavailable(err)) {
		err = errors.New(err.Error()) // drops the wrapped errors
	}
	return nil, err
}

// isUnavailable reports whether the server has compacted the requested revision or has not reached
// it yet.
func isUnavailable(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

func (s *source) get(options *metav1.ListOptions) *rest.Request {
	return s.client.Get().AbsPath(s.path()...).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		MaxRetries(0) // The reflector retries.
}

// List implements cache.ListerWatcher, which reflectors do not call.
func (s *source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options) //nolint:forbidigo // The interface has no context.
}

// Watch implements cache.ListerWatcher, which reflectors do not call.
func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options) //nolint:forbidigo // The interface has no context.
}
