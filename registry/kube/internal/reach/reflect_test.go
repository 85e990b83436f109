// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// secrets is a fake resource. All requests fail, or only watches do.
type secrets struct {
	err      error
	lists    bool
	listed   []metav1.ListOptions
	requests []time.Duration
	began    time.Time
	empty    bool
	silent   bool // watches have no events
	slow     time.Duration
}

func (s *secrets) List(ctx context.Context, o metav1.ListOptions) (*corev1.SecretList, error) {
	s.listed = append(s.listed, o)
	s.requests = append(s.requests, time.Since(s.began))
	if s.slow > 0 {
		select {
		case <-time.After(s.slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.lists {
		return &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
	}
	return nil, s.err
}

func (s *secrets) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	switch {
	case s.empty:
		return watch.NewEmptyWatch(), nil
	case s.silent:
		return watch.NewFake(), nil
	}
	return nil, s.err
}

// reflected runs a reflector for a time, and returns the watcher of its requests.
func (s *secrets) reflected(t *testing.T, d, maxBackoff time.Duration) *Watcher {
	t.Helper()
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = handlers[:1] // without the one that compares with the real time
	defer func() { utilruntime.ErrorHandlers = handlers }()
	s.began = time.Now()
	w := &Watcher{probe: func(context.Context) error { return nil }, failed: func(error) {}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		from := ListWatch(struct{}{}, s, func(o *metav1.ListOptions) { o.LabelSelector = "a=b" }, w.Do)
		Reflect(ctx, "secrets", from, &corev1.Secret{}, cache.NewStore(cache.MetaNamespaceKeyFunc), maxBackoff)
	}()
	time.Sleep(d)
	cancel()
	at := time.Now()
	<-ended
	if late := time.Since(at); late > 0 {
		t.Errorf("it has ended %v late", late)
	}
	return w
}

// A list in a watch that does not come to its end is requested as a list.
func TestListWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &secrets{silent: true, lists: true}
		s.reflected(t, 10*listPatience, time.Second)
		if len(s.requests) != 1 || s.requests[0] != listPatience {
			t.Errorf("lists after %v", s.requests)
		}
	})
}

// Attempts follow each other fast, then at the longest time, and late by chance. After
// an outage the next one follows within that time, however long it was.
func TestBackoff(t *testing.T) {
	for name, err := range map[string]error{
		"refused": &wrapped{syscall.ECONNREFUSED}, "broken": errBroken, "too many": apierrors.NewTooManyRequestsError("wait"),
		"unavailable": apierrors.NewServiceUnavailable("x"), "internal": apierrors.NewInternalError(errBroken),
		"too old": apierrors.NewResourceExpired("old"), "too new": tooNew(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &secrets{err: err}
				const longest = 5 * time.Second
				s.reflected(t, 90*time.Second, longest)
				var gaps []time.Duration
				for i := 1; i < len(s.requests); i++ {
					gap, repeated := s.requests[i]-s.requests[i-1], i > 1 && s.requests[i-1] == s.requests[i-2]
					if gap > 0 {
						gaps = append(gaps, gap)
					} else if repeated { // once is allowed, for a list of no revision
						t.Fatalf("three lists at once: %v", s.requests)
					}
				}
				different := map[time.Duration]bool{}
				for i, gap := range gaps {
					if gap > longest*3/2 || i > 8 && gap < longest {
						t.Fatalf("attempt %d came after %v: %v", i, gap, gaps)
					}
					different[gap] = true
				}
				if len(gaps) < 12 || gaps[0] > time.Second || len(different) < len(gaps)/2 {
					t.Errorf("attempts after %v", gaps)
				}
			})
		})
	}
}

// tooNew returns the error of a server that has not seen a revision.
func tooNew() error {
	err := apierrors.NewTimeoutError("too large resource version", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

type wrapped struct{ error }

func (w *wrapped) Unwrap() error { return w.error }

// client-go's messages for standard error are discarded.
func TestQuiet(t *testing.T) {
	var log bytes.Buffer
	klog.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(&log, nil)))
	defer klog.ClearLogger()
	for _, err := range []error{
		errBroken, &wrapped{syscall.ECONNREFUSED}, apierrors.NewUnauthorized("no"), apierrors.NewResourceExpired("old"), fmt.Errorf("watch: %w", errBroken),
	} {
		for _, lists := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { (&secrets{err: err, lists: lists}).reflected(t, 20*time.Second, time.Second) })
		}
	}
	synctest.Test(t, func(t *testing.T) { (&secrets{empty: true, lists: true}).reflected(t, 20*time.Second, time.Second) })
	// client-go traces lists that take longer than ten seconds.
	synctest.Test(t, func(t *testing.T) {
		(&secrets{err: errBroken, lists: true, slow: 20 * time.Second}).reflected(t, 2*time.Minute, time.Second)
	})
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
}

// No list may return a state older than the request, because one of several servers may lag behind.
func TestListsAreConsistent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &secrets{err: errBroken, lists: true}
		s.reflected(t, 20*time.Second, time.Second)
		if len(s.listed) < 3 {
			t.Errorf("lists %v", s.listed)
		}
		for i, o := range s.listed {
			if want := map[bool]string{true: "", false: "7"}[i == 0]; o.ResourceVersion != want || o.LabelSelector != "a=b" {
				t.Errorf("list %d has %+v, want revision %q", i, o, want)
			}
		}
	})
}

// A connection that breaks as a watch begins is an error.
func TestBrokenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if w := (&secrets{empty: true, err: errBroken}).reflected(t, time.Second, time.Second); w.Err() == nil {
			t.Error("no error")
		}
		w := &Watcher{probe: func(context.Context) error { return nil }, failed: func(error) {}}
		from := ListWatch(struct{}{}, &secrets{empty: true}, func(*metav1.ListOptions) {}, w.Do)
		if _, err := from.(cache.WatcherWithContext).WatchWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errClosed) || !errors.Is(w.Err(), errClosed) {
			t.Errorf("returned %v, remembered %v", err, w.Err())
		}
	})
}
