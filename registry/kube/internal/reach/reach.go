// SPDX-License-Identifier: Apache-2.0

// Package reach finds out early why an API server does not serve a request.
//
// client-go retries a request whose connection breaks up to ten times, and waits half a minute for
// an address that does not respond; only then does the caller of List or Watch get an error.
// Therefore a Watcher probes the server with one small request while a request takes long. The
// error of the probe is the reason. A server that responds to the probe, with any result, is only
// slow.
package reach

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/atomic"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

// patience is the duration of a request after which the server is probed, and the timeout of the
// probe.
const patience = 2 * time.Second

// Watcher has the result of the last request of one kind. Create it with New. Its methods are safe
// for concurrent use.
type Watcher struct {
	// probe makes one small request.
	probe func(context.Context) error
	// failed is called with the first error after a success.
	failed  func(error)
	failure atomic.Error
}

// New returns a Watcher of requests to the server of a client. failed is called with an error if
// there was none before.
func New(client kubernetes.Interface, failed func(error)) *Watcher {
	probe := func(ctx context.Context) error {
		server := client.Discovery().RESTClient()
		if server == nil {
			return nil // a fake client, for example
		}
		return server.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	}
	return &Watcher{probe: probe, failed: failed}
}

// Err returns the reason why the server does not serve requests, nil if it does or if there was no
// request.
func (w *Watcher) Err() error { return w.failure.Load() }

// Do makes a request, and records its result. A revision that is too old is not a failure, because
// it begins a relist. While the request takes long, the server is probed. Do returns the request's
// error.
func (w *Watcher) Do(ctx context.Context, request func() error) error {
	end := w.attend(ctx)
	err := request()
	end()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		w.note(ctx, err)
	}
	return err
}

// note records a result, unless the context has ended.
func (w *Watcher) note(ctx context.Context, err error) {
	if ctx.Err() == nil && w.failure.Swap(err) == nil && err != nil {
		w.failed(err)
	}
}

// attend probes the server periodically until end is called.
func (w *Watcher) attend(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var probing sync.WaitGroup
	probing.Go(func() {
		again := time.NewTimer(patience)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
			if err := w.unreached(ctx); err != nil {
				w.note(ctx, err)
			}
			again.Reset(patience)
		}
	})
	return func() {
		cancel()
		probing.Wait()
	}
}

// unreached returns the reason why the server does not respond at all, nil if it does.
func (w *Watcher) unreached(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := w.probe(ctx)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return nil
	}
	return err
}
