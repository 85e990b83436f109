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

// source lists and watches one resource. It reports what came of each attempt, so
// that its state can be seen; trying again is the reflector's matter.
type source struct {
	client *rest.RESTClient
	// path returns the path of the resource.
	path func() []string
	// list returns an empty list of the resource.
	list func() runtime.Object
	// report is called with nil when the server has answered, else with the error.
	report func(error)

	// mu is held by a call in progress: a reflector does not wait for the end of a
	// list when it ends itself.
	mu    sync.Mutex
	ended bool
	// streams are the watches that began with a list.
	streams sync.WaitGroup
}

// end returns when no call is in progress, and none will be. Before it is called ctx has
// ended.
func (s *source) end() {
	s.streams.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

var _ cache.ListerWatcherWithContext = (*source)(nil)

// ListWithContext implements cache.ListerWatcherWithContext. Every list is consistent. A
// reflector would take its first one from whatever the server has in its cache; of several
// servers one may lag behind, and show what is older than what another one has shown to an
// earlier reflector of the same objects.
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

// WatchWithContext implements cache.ListerWatcherWithContext. Of the errors for
// which client-go has rules of its own it changes three:
//
//   - A connection that breaks is no error to a rest.Request but a watch that ends at
//     once, so that a server that is away would seem to have answered.
//   - A reflector that has no state yet waits after a refusal without looking at ctx,
//     so that Run would not end for as long as the backoff is. As another error, the
//     refusal makes it list instead, which fails as well, and waits as it should.
//   - What is too old such a reflector asks for again at once, also if it has asked for
//     no revision. That, too, makes it list.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	attempt, streams := s.begin(ctx), options.SendInitialEvents != nil
	w, err := s.get(&options).Watch(ctx)
	if err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
		err = errClosed
	}
	if err == nil && streams {
		list := newStreamed(w) // The server has only begun to answer.
		s.streams.Go(func() { list.forward(attempt) })
		return list, nil
	}
	attempt.end(err)
	if err == nil {
		return w, nil
	}
	refused := utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
	if streams && (refused || options.ResourceVersion == "" && isUnavailable(err)) {
		err = errors.New(err.Error()) // without the errors that it wraps
	}
	return nil, err
}

// isUnavailable reports whether a server says that it does not have a revision any more,
// or not yet.
func isUnavailable(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

func (s *source) get(options *metav1.ListOptions) *rest.Request {
	return s.client.Get().AbsPath(s.path()...).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		MaxRetries(0) // The reflector tries again.
}

// List implements cache.ListerWatcher, which reflectors do not call.
func (s *source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options) //nolint:forbidigo // The interface has no context.
}

// Watch implements cache.ListerWatcher, which reflectors do not call.
func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options) //nolint:forbidigo // The interface has no context.
}
