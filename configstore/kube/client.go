// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pilotkit/pilotkit/configstore"
)

// newClient returns a client for any path, which reads and writes JSON.
func newClient(config *rest.Config, schemas configstore.Schemas) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.ContentConfig = rest.ContentConfig{
		NegotiatedSerializer: serializer.NewCodecFactory(schemeOf(schemas)).WithoutConversion(),
		ContentType:          runtime.ContentTypeJSON,
	}
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1 // The API server is fair to its clients; five requests per second are too few.
	}
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return rest.UnversionedRESTClientFor(config)
}

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
}

// end returns when no call is in progress, and none will be.
func (s *source) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

var _ cache.ListerWatcherWithContext = (*source)(nil)

// ListWithContext implements cache.ListerWatcherWithContext.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, context.Canceled
	}
	list := s.list()
	err := s.get(&options).Do(ctx).Into(list)
	s.done(ctx, err)
	return list, err
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	w, err := s.get(&options).Watch(ctx)
	s.done(ctx, err)
	return w, err
}

func (s *source) done(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.report(err)
	}
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
