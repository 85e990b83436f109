// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// answerTime is the time after which a pending list or watch request is reported by Errors. The
// request continues, because a large list from a slow server is not a failure.
const answerTime = 5 * time.Second

var (
	// errNoAnswer is reported while an attempt takes longer than answerTime.
	errNoAnswer = fmt.Errorf("no answer from the API server for %v", answerTime)
	// errClosed replaces an error that client-go does not return.
	errClosed = errors.New("the connection to the API server was closed, or timed out, before it answered")
)

// attempt is a request, or a list that is streamed at the beginning of a watch. It reports its
// outcome, and also when it takes longer than answerTime, unless ctx has ended.
type attempt struct {
	ctx    context.Context //nolint:containedctx // That of the request, which ends with it.
	report func(error)
	late   *time.Timer

	mu   sync.Mutex // serialises the reports
	over bool       // no report follows the outcome
}

func (s *source) begin(ctx context.Context) *attempt {
	a := &attempt{ctx: ctx, report: s.report}
	a.late = time.AfterFunc(answerTime, func() { a.say(errNoAnswer, false) })
	return a
}

// end reports the outcome.
func (a *attempt) end(err error) {
	a.late.Stop()
	a.say(err, true)
}

func (a *attempt) say(err error, last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over && a.ctx.Err() == nil {
		a.report(err)
	}
	a.over = a.over || last
}

// streamed is a watch that begins with a list. A reflector retries after an error in it without
// returning the error, so streamed reports it.
type streamed struct {
	inner   watch.Interface
	events  chan watch.Event
	stop    func()
	stopped chan struct{}
}

var _ watch.Interface = (*streamed)(nil)

func newStreamed(inner watch.Interface) *streamed {
	s := &streamed{inner: inner, events: make(chan watch.Event), stopped: make(chan struct{})}
	s.stop = sync.OnceFunc(func() {
		close(s.stopped)
		inner.Stop()
	})
	return s
}

// Stop implements watch.Interface.
func (s *streamed) Stop() { s.stop() }

// ResultChan implements watch.Interface.
func (s *streamed) ResultChan() <-chan watch.Event { return s.events }

// forward passes the events on until the watch ends or is stopped. The attempt ends when the list
// is complete, or when it has failed.
func (s *streamed) forward(list *attempt) {
	defer close(s.events)
	for event := range s.inner.ResultChan() {
		switch {
		case event.Type == watch.Error:
			list.end(apierrors.FromObject(event.Object))
		case event.Type == watch.Bookmark && isEndOfList(event):
			list.end(nil)
		}
		select {
		case s.events <- event:
		case <-s.stopped:
		case <-list.ctx.Done():
		}
	}
	list.end(errClosed)
}

// isEndOfList reports whether a bookmark marks the end of the initial objects.
func isEndOfList(bookmark watch.Event) bool {
	o, err := meta.Accessor(bookmark.Object)
	return err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
