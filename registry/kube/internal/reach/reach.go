// SPDX-License-Identifier: Apache-2.0

// Package reach says why an API server does not give what it is asked for, as soon
// as that is known.
//
// client-go repeats a request whose connection breaks, up to ten times, and waits
// half a minute for an address that does not answer; only then does the caller of
// List or Watch learn anything. So while a request takes long, a Watcher asks the
// server something small, once: the error of that is the reason. A server that
// answers, whatever it says, is only slow.
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

// patience is how long a request may take before the server is asked something
// small, and how long that may take.
const patience = 2 * time.Second

// Watcher knows how the last request of one kind ended. Create it with New. Its
// methods may be called from any goroutine.
type Watcher struct {
	// probe asks something small, once.
	probe func(context.Context) error
	// failed is called with the first error after a success.
	failed  func(error)
	failure atomic.Error
}

// New returns a Watcher of requests to the server of a client. failed is called
// with an error when there was none before.
func New(client kubernetes.Interface, failed func(error)) *Watcher {
	probe := func(ctx context.Context) error {
		server := client.Discovery().RESTClient()
		if server == nil {
			return nil // as that of fakes
		}
		return server.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	}
	return &Watcher{probe: probe, failed: failed}
}

// Err returns why the server does not give what it is asked for; nil if it does,
// or has not been asked.
func (w *Watcher) Err() error { return w.failure.Load() }

// Do makes a request, and remembers how it ended. A revision that is too old is no
// failure: it is the beginning of a relist. While the request takes long the
// server is probed. It returns the request's error.
func (w *Watcher) Do(ctx context.Context, request func() error) error {
	end := w.attend(ctx)
	err := request()
	end()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		w.note(ctx, err)
	}
	return err
}

// note remembers an answer, unless the caller has gone.
func (w *Watcher) note(ctx context.Context, err error) {
	if ctx.Err() == nil && w.failure.Swap(err) == nil && err != nil {
		w.failed(err)
	}
}

// attend probes the server now and then until end is called.
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

// unreached returns why the server does not answer at all; nil if it does.
func (w *Watcher) unreached(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := w.probe(ctx)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return nil
	}
	return err
}
